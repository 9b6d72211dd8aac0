package rules

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a rule file's text. The state table keeps the file, in an item of up to
// 400 KB (DynamoDB developer guide, "Constraints").
const (
	FileBytesMax = 350 << 10
	tokensMax    = 50_000 // names, values and signs: 500 long rules have 30,000; the parser's time grows with the square
	nestingMax   = 32     // lists and mappings inside one another; a rule file needs 5
	columnMax    = 512    // where a line's first token may stand: bounds the nesting by indentation
)

type nodeKind uint8

const (
	nullNode nodeKind = iota
	scalarNode
	listNode
	mappingNode
	badNode // a problem has been reported here already
)

// node is a YAML value with its place. It is all that the rest of the package
// knows of YAML.
type node struct {
	place
	kind   nodeKind
	text   string // of a scalar, as its style reads
	quoted bool   // a scalar in quotes or a block: always a text
	fields []field
	items  []*node
}

type field struct {
	place
	name  string
	value *node
}

// empty reports whether nothing stands where a mapping belongs.
func (n *node) empty() bool {
	return n.kind == nullNode || n.kind == mappingNode && len(n.fields) == 0
}

func (n *node) describe() string {
	return [...]string{"nothing", "a single value", "a list", "a mapping", "a fault"}[n.kind]
}

// document is a rule file's YAML, read.
type document struct {
	findings
	kinds    kindList
	root     *node
	comments map[int]place // by line: comments that follow something
}

// readDocument parses the YAML. Problems go to the document's findings; root
// is nil if there is nothing to go on with.
func readDocument(filename string, src []byte, kinds []Kind) *document {
	d := &document{findings: findings{file: filename}, kinds: kinds, comments: map[int]place{}}
	src = bytes.TrimPrefix(src, []byte("\xef\xbb\xbf"))
	if len(src) > FileBytesMax {
		d.add(place{}, "file.too_long", "", "the file has more than the %d bytes that are allowed", FileBytesMax)
		return d
	}
	src = bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n"))
	if !utf8.Valid(src) || bytes.IndexByte(src, 0) >= 0 || bytes.IndexByte(src, '\r') >= 0 {
		d.add(place{}, "file.not_text", "save the file as UTF-8 text", "this is not a UTF-8 text file")
		return d
	}
	d.lines = strings.Split(string(src), "\n")
	if d.empty() {
		d.addExample(place{}, "file.empty", smallestFileHint, d.kinds.smallestFile(), "the file is empty: it says nothing of the table, its entities and its rules")
		return d
	}
	tokens, ok := d.tokenize(string(src))
	if !ok {
		return d
	}
	file, err := parseTokens(tokens)
	if err != nil {
		d.syntaxProblem(err)
		return d
	}
	d.readFile(file)
	return d
}

func (d *document) empty() bool {
	for _, line := range d.lines {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") && line != "---" {
			return false
		}
	}
	return true
}

// parseTokens parses; a panic of the YAML package on input that it did not
// expect is a syntax error like any other.
func parseTokens(tokens token.Tokens) (file *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			file, err = nil, fmt.Errorf("this is not YAML that can be read (%v)", r)
		}
	}()
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

// tokenize splits the text into tokens, and refuses what a recursive parser
// could not bear.
func (d *document) tokenize(src string) (tokens token.Tokens, ok bool) {
	defer func() {
		if r := recover(); r != nil {
			d.add(place{}, "yaml.syntax", "", "this is not YAML that can be read (%v)", r)
			ok = false
		}
	}()
	if at, tab := d.tabbedLine(); tab {
		d.add(at, "yaml.tab", "use spaces", "YAML does not allow tabs for indentation")
		return nil, false
	}
	tokens = lexer.Tokenize(src)
	if len(tokens) > tokensMax {
		d.add(tokenPlace(tokens[tokensMax]), "file.too_long", "", "the file has more than %d names, values and signs up to here", tokensMax)
		return nil, false
	}
	depth, sameLine, line := 0, 0, 0
	for _, t := range tokens {
		at := tokenPlace(t)
		if t.Position.Line != line {
			line, sameLine = t.Position.Line, 0
			if t.Type != token.CommentType && t.Position.Column > columnMax {
				d.add(at, "file.nesting", "", "this is indented by more than %d characters", columnMax)
				return nil, false
			}
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType, token.MappingKeyType, token.TagType, token.AnchorType:
			sameLine++
		case token.CommentType:
			if t.Prev != nil && t.Prev.Position.Line == t.Position.Line && t.Prev.Type != token.CommentType {
				d.comments[line] = at
				d.cutTemplate(t, at)
			}
		}
		if depth > nestingMax || sameLine > nestingMax {
			d.add(at, "file.nesting", "", "lists and mappings are nested more than %d deep here", nestingMax)
			return nil, false
		}
	}
	return tokens, true
}

// tabbedLine finds the first line that is indented with a tab.
func (d *document) tabbedLine() (place, bool) {
	for i, line := range d.lines {
		blank := len(line) - len(strings.TrimLeft(line, " \t"))
		tab := strings.IndexByte(line[:blank], '\t')
		if tab >= 0 && blank < len(line) && line[blank] != '#' {
			return place{i + 1, tab + 1, 1}, true
		}
	}
	return place{}, false
}

// syntaxProblem reports a syntax error of the YAML package, in the words of
// the trap if the line holds one.
func (d *document) syntaxProblem(err error) {
	at := place{line: 1, column: 1, length: 1}
	var message string
	var syntax *yaml.SyntaxError
	if !errors.As(err, &syntax) {
		message = err.Error()
	} else if message = syntax.Message; syntax.Token != nil {
		at = tokenPlace(syntax.Token)
	}
	for _, line := range [...]int{at.line, at.line - 1} {
		if d.trap(line) {
			return
		}
	}
	if d.flowTrap(at) {
		return
	}
	hint := "a value that begins with a special character, or holds a colon or # beside a blank, needs quotes"
	switch {
	case strings.HasPrefix(message, "mapping value is not allowed"):
		hint = "put the whole value in quotes: to YAML, a colon before a blank ends a name"
	case strings.HasPrefix(message, "found unknown escape character"):
		hint = "put the value in single quotes: in double quotes, YAML has escapes of its own"
	case strings.HasPrefix(message, "value is not allowed"):
		hint = "the fields of one mapping begin in the same column"
	}
	d.add(at, "yaml.syntax", hint, "%s", message)
}

// tokenPlace returns where a token's own text begins, and its width on its first line.
func tokenPlace(t *token.Token) place {
	width := len([]rune(strings.SplitN(strings.TrimSpace(t.Origin), "\n", 2)[0]))
	return place{t.Position.Line, t.Position.Column, max(1, width)}
}

// readFile turns the YAML package's tree into nodes.
func (d *document) readFile(file *ast.File) {
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.CommentType && doc.Body.Type() != ast.DirectiveType {
			bodies = append(bodies, doc.Body)
		}
	}
	if len(bodies) == 0 {
		d.addExample(place{}, "file.empty", smallestFileHint, d.kinds.smallestFile(), "the file is empty: it says nothing of the table, its entities and its rules")
		return
	}
	if len(bodies) > 1 {
		d.add(d.read(bodies[1]).place, "file.documents", "put everything into one document, without ---",
			"a second YAML document begins here; a rule file is one")
	}
	root := d.read(bodies[0])
	if root.kind != mappingNode {
		if root.kind != badNode {
			d.addExample(root.place, "file.not_yaml", smallestFileHint, d.kinds.smallestFile(),
				"this is %s, not a rule file", root.describe())
		}
		return
	}
	d.root = root
}

// read turns one node of the YAML package's tree into a node.
func (d *document) read(n ast.Node) *node {
	if n == nil {
		return &node{kind: nullNode}
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return d.readMapping(n.Values, n.GetToken())
	case *ast.MappingValueNode:
		return d.readMapping([]*ast.MappingValueNode{n}, n.Key.GetToken())
	case *ast.SequenceNode:
		list := &node{place: tokenPlace(n.GetToken()), kind: listNode}
		for _, item := range n.Values {
			list.items = append(list.items, d.read(item))
		}
		return list
	case *ast.LiteralNode:
		at := tokenPlace(n.Start)
		return &node{place: at, kind: scalarNode, text: n.Value.Value, quoted: true}
	case *ast.StringNode:
		t := n.GetToken()
		quoted := t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType
		return &node{place: tokenPlace(t), kind: scalarNode, text: n.Value, quoted: quoted}
	case *ast.NullNode:
		return d.readNull(n)
	case *ast.TagNode, *ast.AliasNode, *ast.AnchorNode, *ast.MergeKeyNode:
		return d.reject(n)
	}
	t := n.GetToken()
	return &node{place: tokenPlace(t), kind: scalarNode, text: t.Value}
}

func (d *document) readNull(n *ast.NullNode) *node {
	at := tokenPlace(n.GetToken())
	if comment, cut := d.comments[at.line]; cut && n.GetToken().Type == token.ImplicitNullType {
		d.add(comment, "yaml.comment", "put the value in quotes",
			"the value is missing: to YAML, everything from this # on is a comment")
		return &node{place: at, kind: badNode}
	}
	return &node{place: at, kind: nullNode}
}

// readMapping reads a mapping's pairs. Keys that stand twice are reported, and the first one counts.
func (d *document) readMapping(values []*ast.MappingValueNode, start *token.Token) *node {
	m := &node{place: tokenPlace(start), kind: mappingNode}
	if len(values) > 0 {
		if key := tokenPlace(values[0].Key.GetToken()); m.line != key.line || m.column > key.column {
			m.place = key
		}
	}
	seen := map[string]int{}
	for _, pair := range values {
		key := d.read(pair.Key)
		if _, merge := pair.Key.(*ast.MergeKeyNode); merge || key.kind == badNode {
			continue
		}
		if key.kind == nullNode {
			key.text = "null"
		}
		if first, twice := seen[key.text]; twice {
			d.add(key.place, "yaml.duplicate_key", "rename one of them, or drop it",
				"%q stands here for the second time; the first is in line %d", key.text, first)
			d.read(pair.Value)
			continue
		}
		seen[key.text] = key.line
		value := d.read(pair.Value)
		if value.kind == nullNode || value.line == 0 {
			value.place = key.place
		}
		m.fields = append(m.fields, field{place: key.place, name: key.text, value: value})
	}
	return m
}
