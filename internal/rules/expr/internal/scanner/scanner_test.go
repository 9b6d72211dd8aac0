package scanner

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestScanFindsTokensAndTheirPlaces(t *testing.T) {
	for source, want := range map[string]string{
		"":                     "0-0 the end ",
		"a in\t[1.5e3,]":       "0-1 a name a, 2-4 in in, 5-6 [ [, 6-11 a number 1.5e3, 11-12 , ,, 12-13 ] ], 13-13 the end ",
		" `user-name`<='\\n'":  "1-12 a name in backquotes user-name, 12-14 <= <=, 14-18 a string \n, 18-18 the end ",
		`"\uD83D\uDE00"`:       "0-14 a string 😀, 14-14 the end ",
		"12ab":                 "fault 0-4 a number",
		"a + 'b\n":             "fault 4-6 a string",
		`'\x'`:                 "fault 1-3 a string",
		"`a":                   "fault 0-2 a name in backquotes",
		"a <> b":               "fault 2-4 ",
		"a \xff":               "fault 2-3 ",
		"a ; 'never closed, b": "fault 2-3 ",
	} {
		tokens, fault := Scan(source)
		texts := make([]string, len(tokens))
		for i, token := range tokens {
			texts[i] = fmt.Sprintf("%d-%d %s %s", token.Start, token.End, token.Kind, token.Text)
		}
		got := strings.Join(texts, ", ")
		if fault != nil {
			got += fmt.Sprintf("fault %d-%d %s", fault.Start, fault.End, fault.Kind)
		}
		if got != want {
			t.Errorf("%q\n got %q\nwant %q", source, got, want)
		}
	}
}

func TestClosingBraceIsNotInsideQuotes(t *testing.T) {
	for text, want := range map[string]int{"${a}": 3, `${"}"}`: 5, "${`}`}}": 5, `${'\'}'}`: 7, "${a": -1, `${"}`: -1, `${'\`: -1} {
		if got := ClosingBrace(text, 2); got != want {
			t.Errorf("%s ends at byte %d, want %d", text, got, want)
		}
	}
}

func TestTheGrammarOfTheDocumentHasEverySymbol(t *testing.T) {
	text, err := os.ReadFile("../../../../../docs/expressions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, grammar, _ := strings.Cut(string(text), "```ebnf\n")
	grammar, _, _ = strings.Cut(grammar, "```")
	for _, symbol := range symbols {
		if !strings.Contains(grammar, `"`+symbol+`"`) {
			t.Errorf("the grammar has no %s", symbol)
		}
	}
}
