package expr

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
)

func document(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/expressions.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blocks returns the contents of a document's fenced blocks of one language.
func blocks(text, language string) []string {
	var contents []string
	for _, found := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```").FindAllStringSubmatch(text, -1) {
		contents = append(contents, found[1])
	}
	return contents
}

func TestEveryExampleOfTheDocumentIsTrue(t *testing.T) {
	text := document(t)
	items := blocks(text, "json")
	if len(items) != 1 {
		t.Fatalf("the document has %d items, want 1", len(items))
	}
	it := item(t, items[0])
	examples := 0
	for _, block := range blocks(text, "expr") {
		for line := range strings.SplitSeq(strings.TrimSpace(block), "\n") {
			source, want, ok := strings.Cut(line, " => ")
			if !ok {
				t.Errorf("no => in %q", line)
				continue
			}
			examples++
			source, want = strings.TrimSpace(source), strings.TrimSpace(want)
			if got := run(source, it); got != want {
				t.Errorf("%s is %s, the document says %s", source, got, want)
			}
		}
	}
	if examples < 75 {
		t.Errorf("only %d examples were found", examples)
	}
}

func TestTheDocumentNamesEveryBoundCodeAndFunction(t *testing.T) {
	text := document(t)
	grammar := strings.Join(blocks(text, "ebnf"), "")
	for _, want := range []string{
		fmt.Sprintf("| length of a text | %d bytes |", SourceBytesMax), fmt.Sprintf("| %d |\n| steps of one path | %d |", DepthMax, DepthMax),
		fmt.Sprintf("| length of a joined string | %d bytes |", StringBytesMax),
		"| `" + CodeSyntax, "| `" + CodeUnknownFunction, "| `" + CodeType, "| `" + CodeTooDeep, "| `" + CodeTooLong, "| `" + CodeNumber,
		"| `" + CodeString,
		"| `" + CodeValueType, "| `" + CodeValueSize, "| `" + CodeNumberOverflow, "| `" + CodeNumberDivision,
		"| `" + CodeNumberWidth, "| `" + CodeUnclosed, "| `" + CodeEmpty,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the document has no %q", want)
		}
	}
	for _, f := range functions {
		if !strings.Contains(grammar, `"`+f.name+`"`) || !strings.Contains(text, "`"+f.usage+"`") {
			t.Errorf("the document does not explain %s", f.usage)
		}
	}
}

func ExampleProgram_Condition() {
	p, err := Compile(`role != "banned" && size(tags) > 0`)
	if err != nil {
		fmt.Println(err)
		return
	}
	it := change.Item{"role": change.String("member"), "tags": change.Set(change.KindStringSet, []string{"vip"})}
	fmt.Println(p.Reads())
	fmt.Println(p.Condition(it.Lookup))
	// Output:
	// [role tags]
	// true <nil>
}

func ExampleProgram_Amount() {
	p, err := Compile("price * quantity")
	if err != nil {
		fmt.Println(err)
		return
	}
	it := change.Item{"price": change.Number("0.10"), "quantity": change.Number("3")}
	fmt.Println(p.Amount(it.Lookup))
	delete(it, "quantity")
	fmt.Println(p.Amount(it.Lookup))
	// Output:
	// 0.3 true <nil>
	// 0 false <nil>
}

func ExampleCompile() {
	_, err := Compile(`name.startWith("A")`)
	var problem *Error
	if !errors.As(err, &problem) {
		return
	}
	fmt.Printf("%d+%d %s: %s; %s\n", problem.Offset, problem.Length, problem.Code, problem.Message, problem.Hint)
	// Output: 5+9 expr.unknown_function: there is no function startWith; did you mean x.startsWith(y)?
}
