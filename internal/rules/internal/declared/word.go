package declared

import (
	"strings"
	"unicode/utf8"

	"github.com/dynamill/dynamill/internal/rules/internal/document"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// word reads a name or another text. The empty word means that a problem was reported.
func (p Parser) word(n *document.Node, what string) Word {
	text := strings.TrimSpace(n.Text)
	switch {
	case n.Kind != document.ScalarNode:
		p.wrongNode(n, what, "a text")
	case text == "":
		p.wrongNode(&document.Node{Place: n.Place, Kind: document.NullNode}, what, "a text")
	default:
		return Word{At: n.Place, Text: text, Node: n}
	}
	return Word{At: n.Place}
}

// words reads a text, or a list of texts.
func (p Parser) words(n *document.Node, what string) []Word {
	var ws []Word
	items := []*document.Node{n}
	if n.Kind == document.ListNode {
		items = n.Items
	}
	for _, item := range items {
		if w := p.word(item, what); w.Given() {
			ws = append(ws, w)
		}
	}
	return ws
}

// backquote encloses a name that has more than letters, digits and _.
const backquote = "`"

// name takes the backquotes off a name, and reports one that needs them.
func (p Parser) name(w Word) Word {
	switch {
	case isQuotedName(w.Text):
		w.Text, w.Backquoted = w.Text[1:len(w.Text)-1], true
	case strings.Contains(w.Text, backquote):
		p.Add(w.At, "name.backquotes", quotesHint("user-name"), "%s is no name in backquotes", w.Text)
		w.Text = strings.ReplaceAll(w.Text, backquote, "")
	case w.Given() && !isPath(w.Text) && !p.Former:
		p.Add(w.At, "name.backquotes", quotesHint(w.Text), "%q has more than letters, digits and _: such a name stands in backquotes", w.Text)
	}
	return w
}

// newName is name of a field of a mapping. It reports a field that has the name of another one: to YAML these differ if one of them stands
// in backquotes.
func (p Parser) newName(w Word, known map[string]bool) Word {
	w = p.name(w)
	if known[w.Text] && !p.Former {
		p.Add(w.At, "yaml.duplicate_key", "rename one of them, or drop it", "%s is there twice, once in backquotes", w.Text)
	}
	known[w.Text] = true
	return w
}

// isQuotedName reports whether a text is one name in backquotes.
func isQuotedName(text string) bool {
	return len(text) > 2 && text[0] == backquote[0] && strings.Index(text[1:], backquote) == len(text)-2
}

func quotesHint(name string) string {
	return "write `" + name + "`, and put the whole value in quotes: to YAML, a bare backquote begins nothing"
}

// isPath reports whether a text is a plain name, or several with dots between: a checker says what is wrong with these.
func isPath(text string) bool {
	for part := range strings.SplitSeq(text, ".") {
		if !templates.IsName(part) {
			return false
		}
	}
	return true
}

// fieldsOf splits a text at blanks outside backquotes. It returns where each field begins and ends.
func fieldsOf(text string) (fields [][2]int) {
	begin, quoted := -1, false
	for i := range len(text) + 1 {
		blank := i == len(text) || !quoted && strings.IndexByte(" \t\r\n", text[i]) >= 0
		switch {
		case blank && begin >= 0:
			fields, begin = append(fields, [2]int{begin, i}), -1
		case !blank && begin < 0:
			begin = i
		}
		quoted = quoted != (i < len(text) && text[i] == backquote[0])
	}
	return fields
}

// within narrows a word to a part of its text, if the word stands in one line as it is read.
func (w Word) within(start, length int) Word {
	part := Word{At: w.At, Text: w.Text[start : start+length], Node: w.Node}
	if w.Node == nil || w.At.Length < utf8.RuneCountInString(w.Text) || w.Node.Line != w.At.Line {
		return part
	}
	if w.Node.Quoted && w.At == w.Node.Place {
		part.At.Column++
	}
	part.At.Column += utf8.RuneCountInString(w.Text[:start])
	part.At.Length = utf8.RuneCountInString(part.Text)
	return part
}
