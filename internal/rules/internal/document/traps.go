package document

import (
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// reject reports YAML that a rule file has no use for, but that people write by accident.
func (d *Document) reject(n ast.Node) *Node {
	at := tokenPlace(n.GetToken())
	switch n := n.(type) {
	case *ast.TagNode:
		tag := n.GetToken().Value
		at.Length = utf8.RuneCountInString(tag)
		if strings.HasPrefix(tag, "!!") {
			d.Add(at, "yaml.tag", "drop it", "%s is a YAML tag; rule files have none", tag)
			break
		}
		d.Add(at, "yaml.tag", d.quoteHint(at),
			"to YAML, %s is a tag and no part of the value", tag)
	case *ast.AliasNode:
		d.Add(at, "yaml.alias", d.quoteHint(at),
			"to YAML, a value that begins with * is an alias; rule files have none")
	case *ast.AnchorNode:
		d.Add(at, "yaml.alias", "if it is meant as text, put it in quotes",
			"to YAML, a value that begins with & is an anchor; rule files have none")
	default:
		d.Add(at, "yaml.alias", "write the fields out", "to YAML, << merges an alias; rule files have none")
	}
	return &Node{Place: at, Kind: BadNode}
}

// quoteHint shows the text of a line from a place to where its value seems to end, in quotes.
func (d *Document) quoteHint(at Place) string {
	line := d.lines[at.Line-1]
	rest := line[len(firstOf(line, at.Column-1)):]
	for _, stop := range []string{" #", ", ", " }", "]", "'"} {
		if i := strings.Index(rest, stop); i > 0 {
			rest = rest[:i]
		}
	}
	return "put the whole value in quotes, as in '" + strings.TrimSpace(rest) + "'"
}

// trap looks a line that is no YAML over for what people stumble on. It
// reports what it finds and returns false if it found nothing.
func (d *Document) trap(line int) bool {
	if line < 1 || line > len(d.lines) {
		return false
	}
	unquoted := maskQuoted(d.lines[line-1])
	at := func(offset, length int) Place { return placeIn(d.lines, line, offset, length) }
	if i := strings.Index(unquoted, "${"); i >= 0 {
		d.Add(at(i, 2), "yaml.flow", `put the whole value in quotes, as in "USER#${userId}"`,
			"to YAML, this { begins a mapping")
		return true
	}
	for i := 0; i+1 < len(unquoted); i++ {
		if unquoted[i] != ' ' && unquoted[i] != ':' && unquoted[i] != ',' {
			continue
		}
		if unquoted[i+1] == '#' && i > 0 && strings.Count(unquoted[:i], "{") > strings.Count(unquoted[:i], "}") {
			d.Add(at(i+1, 1), "yaml.comment", "put the value in quotes, or move the comment to its own line",
				"to YAML, everything from this # on is a comment, the closing } too")
			return true
		}
		if endsWithColon(unquoted[:i]) && d.badStart(at(i+1, 1), unquoted[i+1:]) {
			return true
		}
	}
	return false
}

// badStart reports a value, masked, that begins with what YAML takes for something else.
func (d *Document) badStart(at Place, value string) bool {
	hint := d.quoteHint(at)
	switch value[0] {
	case '!':
		d.Add(at, "yaml.tag", hint, "to YAML, a value that begins with ! is a tag")
	case '*':
		d.Add(at, "yaml.alias", hint, "to YAML, a value that begins with * is an alias; rule files have none")
	case '&':
		d.Add(at, "yaml.alias", hint, "to YAML, a value that begins with & is an anchor; rule files have none")
	case '`', '@', '%':
		d.Add(at, "yaml.syntax", hint, "a value cannot begin with %c", value[0])
	case '>', '|':
		header := strings.TrimSpace(strings.TrimLeft(value[1:], "+-0123456789"))
		if header == "" || header[0] == '#' {
			return false
		}
		d.Add(at, "yaml.syntax", hint, "to YAML, %c begins a block of lines", value[0])
	case '_':
		if !afterQuotes(value) {
			return false
		}
		d.Add(at, "yaml.syntax", `put the whole value in single quotes, as in '"a" == b'`,
			"to YAML, the value ends with its closing quote, and something follows")
	default:
		return false
	}
	return true
}

// cutTemplate reports a comment that was meant as a part of a key: one whose
// first word holds a variable, behind a value without quotes.
func (d *Document) cutTemplate(comment *token.Token, at Place) {
	first, _, _ := strings.Cut(strings.TrimPrefix(comment.Value, "#"), " ")
	before := comment.Prev
	if !strings.Contains(first, "${") || before.Type != token.StringType && before.Type != token.MappingValueType {
		return
	}
	d.Add(at, "yaml.comment", `put the whole value in quotes, as in "USER#${userId}"`,
		"to YAML, everything from this # on is a comment and no part of the key")
}

// flowTrap says what is wrong inside { }, where the YAML package only says
// that something else was expected. False if it cannot tell.
func (d *Document) flowTrap(at Place) bool {
	line := d.lines[min(at.Line, len(d.lines))-1]
	offset := len(firstOf(line, at.Column-1))
	if offset < len(line) && (line[offset] == '[' || line[offset] == '{') && offset > 0 && !endsWithColon(line[:offset]) {
		d.Add(Place{at.Line, at.Column, 1}, "yaml.flow", "put the whole value in single quotes",
			"inside { }, a %c within a value without quotes begins a value of its own", line[offset])
		return true
	}
	for n := 1; n <= len(d.lines); n++ {
		unquoted := maskQuoted(d.lines[n-1])
		if cut := strings.Index(unquoted, " #"); cut >= 0 && endsWithColon(unquoted[:cut]) && strings.Contains(unquoted[:cut], "{") {
			d.Add(placeIn(d.lines, n, cut+1, 1), "yaml.comment", "put the value in quotes",
				"to YAML, everything from this # on is a comment, the closing } too")
			return true
		}
	}
	for n := at.Line - 1; n > 0 && n >= at.Line-2; n-- {
		unquoted := maskQuoted(d.lines[n-1])
		if open := strings.IndexByte(unquoted, '{'); open >= 0 && strings.Count(unquoted, "{") > strings.Count(unquoted, "}") {
			d.Add(placeIn(d.lines, n, open, 1), "yaml.flow", "close it with }",
				"this line opens more { than it closes")
			return true
		}
	}
	return false
}

func endsWithColon(s string) bool { return strings.HasSuffix(strings.TrimRight(s, " "), ":") }

// afterQuotes reports whether a value, masked, that begins with a quoted text goes on after it.
func afterQuotes(masked string) bool {
	rest := strings.TrimSpace(strings.TrimLeft(masked, "_"))
	return rest != "" && !strings.ContainsRune("#,}]", rune(rest[0]))
}

// maskQuoted replaces everything between quotes, the quotes too, by underscores.
func maskQuoted(line string) string {
	masked := []byte(line)
	quote := byte(0)
	for i := range masked {
		c := masked[i]
		switch {
		case quote == 0 && (c == '"' || c == '\'') && (i == 0 || strings.IndexByte(" :,[{(", line[i-1]) >= 0):
			quote = c
			masked[i] = '_'
		case quote != 0:
			if c == quote && line[i-1] != '\\' {
				quote = 0
			}
			masked[i] = '_'
		}
	}
	return string(masked)
}

// tabTrap reports the first line that is indented with a tab; false if there is none.
func (d *Document) tabTrap() bool {
	for i, line := range d.lines {
		blank := len(line) - len(strings.TrimLeft(line, " \t"))
		tab := strings.IndexByte(line[:blank], '\t')
		if tab >= 0 && blank < len(line) && line[blank] != '#' {
			d.Add(Place{i + 1, tab + 1, 1}, "yaml.tab", "use spaces", "YAML does not allow tabs for indentation")
			return true
		}
	}
	return false
}
