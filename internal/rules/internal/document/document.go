// Package document reads the YAML of a rule file into nodes that know their places, collects the file's problems, and
// explains what people stumble on in YAML. It knows nothing of tables, entities and rules.
package document

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
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

// NodeKind is the kind of a Node.
type NodeKind uint8

// The kinds of nodes.
const (
	NullNode NodeKind = iota
	ScalarNode
	ListNode
	MappingNode
	BadNode // a problem has been reported here already
)

// Node is a YAML value with its place. It is all that package rules knows of YAML.
type Node struct {
	Place
	Kind   NodeKind
	Text   string // of a scalar, as its style reads
	Quoted bool   // a scalar in quotes or a block: always a text
	Fields []Field
	Items  []*Node
}

// Field is one name of a mapping, with its value.
type Field struct {
	Place
	Name  string
	Value *Node
}

// Empty reports whether nothing stands where a mapping belongs.
func (n *Node) Empty() bool {
	return n.Kind == NullNode || n.Kind == MappingNode && len(n.Fields) == 0
}

// Describe names the kind for a sentence.
func (n *Node) Describe() string {
	return [...]string{"nothing", "a single value", "a list", "a mapping", "a fault"}[n.Kind]
}

// Document is a rule file's YAML, read.
type Document struct {
	Findings
	Root     *Node
	example  string        // a whole file, for problems of files that say nothing
	comments map[int]Place // by line: comments that follow something
}

// Read parses the YAML. Problems go to the document's findings; a file that says nothing
// is shown the example, a whole file. Root is nil if there is nothing to go on with.
func Read(filename string, src []byte, example string) *Document {
	d := &Document{Findings: Findings{file: filename}, example: example, comments: map[int]Place{}}
	src = bytes.TrimPrefix(src, []byte("\xef\xbb\xbf"))
	if len(src) > FileBytesMax {
		d.Add(Place{}, "file.too_long", "", "the file has more than the %d bytes that are allowed", FileBytesMax)
		return d
	}
	src = bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n"))
	if !utf8.Valid(src) || bytes.IndexByte(src, 0) >= 0 || bytes.IndexByte(src, '\r') >= 0 {
		d.Add(Place{}, "file.not_text", "save the file as UTF-8 text", "this is not a UTF-8 text file")
		return d
	}
	d.lines = strings.Split(string(src), "\n")
	if d.empty() {
		d.addEmpty()
		return d
	}
	if d.tabTrap() {
		return d
	}
	file, err := d.parse(string(src))
	if err != nil {
		d.syntaxProblem(err)
	}
	if file != nil {
		d.readFile(file)
	}
	return d
}

func (d *Document) empty() bool {
	return !slices.ContainsFunc(d.lines, func(line string) bool {
		line = strings.TrimSpace(line)
		return line != "" && !strings.HasPrefix(line, "#") && line != "---"
	})
}

func (d *Document) addEmpty() {
	d.AddExample(Place{}, "file.empty", ExampleHint, d.example, "the file is empty: it says nothing of the table, its entities and its rules")
}

// parse parses the text; nil if it reports a problem itself. A panic of the YAML package on input
// that it did not expect is a syntax error like any other.
func (d *Document) parse(src string) (file *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			file, err = nil, fmt.Errorf("this is not YAML that can be read (%v)", r)
		}
	}()
	tokens := lexer.Tokenize(src)
	if !d.checkBounds(tokens) {
		return nil, nil
	}
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

// checkBounds reports whether the file is small and flat enough for a recursive parser; otherwise it adds a
// problem. It also records the places of comments.
func (d *Document) checkBounds(tokens token.Tokens) bool {
	if len(tokens) > tokensMax {
		d.Add(tokenPlace(tokens[tokensMax]), "file.too_long", "", "the file has more than %d names, values and signs up to here", tokensMax)
		return false
	}
	depth, sameLine, line := 0, 0, 0
	for _, t := range tokens {
		at := tokenPlace(t)
		if t.Position.Line != line {
			line, sameLine = t.Position.Line, 0
			if t.Type != token.CommentType && t.Position.Column > columnMax {
				d.Add(at, "file.nesting", "", "this is indented by more than %d characters", columnMax)
				return false
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
			d.Add(at, "file.nesting", "", "lists and mappings are nested more than %d deep here", nestingMax)
			return false
		}
	}
	return true
}

// syntaxProblem reports a syntax error of the YAML package, in the words of
// the trap if the line holds one.
func (d *Document) syntaxProblem(err error) {
	at, message := Place{Line: 1, Column: 1, Length: 1}, err.Error()
	if syntax, ok := errors.AsType[*yaml.SyntaxError](err); ok {
		message = syntax.Message
		if syntax.Token != nil {
			at = tokenPlace(syntax.Token)
		}
	}
	if d.trap(at.Line) || d.trap(at.Line-1) || d.flowTrap(at) {
		return
	}
	hint := "a value that begins with a special character, or holds a colon or # beside a blank, needs quotes"
	switch {
	case strings.HasPrefix(message, "mapping value is not allowed"):
		hint = "put the whole value in quotes: to YAML, a colon before a blank ends a name"
	case strings.HasPrefix(message, "found unknown escape character"):
		hint = "put the value in single quotes: in double quotes, YAML has escapes of its own"
	case strings.HasSuffix(message, "is a reserved character"):
		hint = "put the whole value in quotes, as in \"`user-name`\""
	case strings.HasPrefix(message, "value is not allowed"):
		hint = "the fields of one mapping begin in the same column"
	}
	d.Add(at, "yaml.syntax", hint, "%s", message)
}

// tokenPlace returns where a token's own text begins, and its width on its first line.
func tokenPlace(t *token.Token) Place {
	width := len([]rune(strings.SplitN(strings.TrimSpace(t.Origin), "\n", 2)[0]))
	return Place{t.Position.Line, t.Position.Column, max(1, width)}
}

func (d *Document) readFile(file *ast.File) {
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.CommentType && doc.Body.Type() != ast.DirectiveType {
			bodies = append(bodies, doc.Body)
		}
	}
	if len(bodies) == 0 {
		d.addEmpty()
		return
	}
	if len(bodies) > 1 {
		d.Add(d.read(bodies[1]).Place, "file.documents", "put everything into one document, without ---",
			"a second YAML document begins here; a rule file is one")
	}
	root := d.read(bodies[0])
	if root.Kind != MappingNode {
		if root.Kind != BadNode {
			d.AddExample(root.Place, "file.not_yaml", ExampleHint, d.example,
				"this is %s, not a rule file", root.Describe())
		}
		return
	}
	d.Root = root
}

// read turns one node of the YAML package's tree into a node.
func (d *Document) read(n ast.Node) *Node {
	if n == nil {
		return &Node{Kind: NullNode}
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return d.readMapping(n.Values, n.GetToken())
	case *ast.MappingValueNode:
		return d.readMapping([]*ast.MappingValueNode{n}, n.Key.GetToken())
	case *ast.SequenceNode:
		list := &Node{Place: tokenPlace(n.GetToken()), Kind: ListNode}
		for _, item := range n.Values {
			list.Items = append(list.Items, d.read(item))
		}
		return list
	case *ast.LiteralNode:
		return &Node{Place: tokenPlace(n.Start), Kind: ScalarNode, Text: n.Value.Value, Quoted: true}
	case *ast.StringNode:
		t := n.GetToken()
		quoted := t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType
		return &Node{Place: tokenPlace(t), Kind: ScalarNode, Text: n.Value, Quoted: quoted}
	case *ast.NullNode:
		return d.readNull(n)
	case *ast.TagNode, *ast.AliasNode, *ast.AnchorNode, *ast.MergeKeyNode:
		return d.reject(n)
	}
	t := n.GetToken()
	return &Node{Place: tokenPlace(t), Kind: ScalarNode, Text: t.Value}
}

func (d *Document) readNull(n *ast.NullNode) *Node {
	at := tokenPlace(n.GetToken())
	if comment, cut := d.comments[at.Line]; cut && n.GetToken().Type == token.ImplicitNullType {
		d.Add(comment, "yaml.comment", "put the value in quotes",
			"the value is missing: to YAML, everything from this # on is a comment")
		return &Node{Place: at, Kind: BadNode}
	}
	return &Node{Place: at, Kind: NullNode}
}

// readMapping reads a mapping's pairs. Keys that stand twice are reported, and the first one counts.
func (d *Document) readMapping(values []*ast.MappingValueNode, start *token.Token) *Node {
	m := &Node{Place: tokenPlace(start), Kind: MappingNode}
	if len(values) > 0 {
		if key := tokenPlace(values[0].Key.GetToken()); m.Line != key.Line || m.Column > key.Column {
			m.Place = key
		}
	}
	seen := map[string]int{}
	for _, pair := range values {
		key := d.read(pair.Key)
		if _, merge := pair.Key.(*ast.MergeKeyNode); merge || key.Kind == BadNode {
			continue
		}
		if key.Kind == NullNode {
			key.Text = "null"
		}
		if first, twice := seen[key.Text]; twice {
			d.Add(key.Place, "yaml.duplicate_key", "rename one of them, or drop it",
				"%q stands here for the second time; the first is in line %d", key.Text, first)
			d.read(pair.Value)
			continue
		}
		seen[key.Text] = key.Line
		value := d.read(pair.Value)
		if value.Kind == NullNode || value.Line == 0 {
			value.Place = key.Place
		}
		m.Fields = append(m.Fields, Field{Place: key.Place, Name: key.Text, Value: value})
	}
	return m
}

// Cut is the place of the comment that follows something in a line. It reports whether there is one.
func (d *Document) Cut(line int) (Place, bool) {
	at, cut := d.comments[line]
	return at, cut
}

// Line is one line of the file, from 1.
func (d *Document) Line(n int) string { return d.lines[n-1] }

// ExampleHint is the hint of problems that show the whole example.
const ExampleHint = "this is a whole rule file:"
