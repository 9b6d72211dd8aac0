package rules

import (
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
)

// reject reports YAML that a rule file has no use for, but that people write by accident.
func (d *document) reject(n ast.Node) *node {
	at := tokenPlace(n.GetToken())
	switch n := n.(type) {
	case *ast.TagNode:
		tag := n.GetToken().Value
		at.length = utf8.RuneCountInString(tag)
		d.add(at, "yaml.tag", "put the whole value in quotes, as in '"+strings.TrimSpace(d.restOfValue(at))+"'",
			"to YAML, %s is a tag and no part of the value", tag)
	case *ast.AliasNode:
		d.add(at, "yaml.alias", "put the whole value in quotes, as in '"+strings.TrimSpace(d.restOfValue(at))+"'",
			"to YAML, a value that begins with * is an alias; rule files have none")
	case *ast.AnchorNode:
		d.add(at, "yaml.alias", "if it is meant as text, put it in quotes", "to YAML, a value that begins with & is an anchor; rule files have none")
	default:
		d.add(at, "yaml.alias", "write the fields out", "to YAML, << merges an alias; rule files have none")
	}
	return &node{place: at, kind: badNode}
}

// restOfValue returns the text of a line from a place to where its value seems to end.
func (d *document) restOfValue(at place) string {
	if at.line < 1 || at.line > len(d.lines) {
		return ""
	}
	runes := []rune(d.lines[at.line-1])
	if at.column-1 > len(runes) {
		return ""
	}
	rest := string(runes[max(0, at.column-1):])
	end := len(rest)
	for _, stop := range []string{" #", ", ", " }", "]", "'"} {
		if i := strings.Index(rest, stop); i > 0 && i < end {
			end = i
		}
	}
	return rest[:end]
}

// trap looks a line that is no YAML over for what people stumble on. It
// reports what it finds and returns false if it found nothing.
func (d *document) trap(line int) bool {
	if line < 1 || line > len(d.lines) {
		return false
	}
	text, bare := d.lines[line-1], maskQuoted(d.lines[line-1])
	at := func(offset, length int) place {
		return place{line, utf8.RuneCountInString(text[:offset]) + 1, length}
	}
	if i := strings.Index(bare, "${"); i >= 0 {
		d.add(at(i, 2), "yaml.flow", `put the whole value in quotes, as in "USER#${userId}"`,
			"to YAML, this { begins a mapping")
		return true
	}
	for i := 0; i+1 < len(bare); i++ {
		if bare[i] != ' ' && bare[i] != ':' && bare[i] != ',' {
			continue
		}
		switch rest := bare[i+1:]; {
		case rest[0] == '#' && i > 0 && strings.Count(bare[:i], "{") > strings.Count(bare[:i], "}"):
			d.add(at(i+1, 1), "yaml.comment", "put the value in quotes, or move the comment to its own line",
				"to YAML, everything from this # on is a comment, the closing } too")
			return true
		case rest[0] == '*' && len(rest) > 1 && bare[i] == ' ' && endsWithColon(bare[:i]):
			d.add(at(i+1, 1), "yaml.alias", "put the whole value in quotes", "to YAML, a value that begins with * is an alias; rule files have none")
			return true
		case strings.ContainsRune("`@%", rune(rest[0])) && endsWithColon(bare[:i]):
			d.add(at(i+1, 1), "yaml.syntax", "put the whole value in quotes", "a value cannot begin with %c", rest[0])
			return true
		case rest[0] == '_' && endsWithColon(bare[:i]) && afterQuotes(bare[i+1:]):
			d.add(at(i+1, 1), "yaml.syntax", `put the whole value in single quotes, as in '"a" == b'`,
				"to YAML, the value ends with its closing quote, and something follows")
			return true
		}
	}
	return false
}

func endsWithColon(s string) bool { return strings.HasSuffix(strings.TrimRight(s, " "), ":") }

// afterQuotes reports whether a value, masked, that begins with a quoted text goes on after it.
func afterQuotes(masked string) bool {
	rest := strings.TrimLeft(masked, "_")
	rest = strings.TrimSpace(rest)
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
