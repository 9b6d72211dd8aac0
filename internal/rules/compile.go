package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules/internal/document"
)

// Load parses, checks and compiles a rule file that may have rules of these kinds.
// filename is for the problems only. The error is a *Problems that holds every problem found.
func Load(filename string, src []byte, kinds []Kind) (*Set, error) {
	return load(filename, src, kinds, false)
}

// LoadFormer is Load for a rule file that was in force once. A placeholder of
// another tool is a constant, as it was then. Such a file derived nothing, and the
// engine must still read it to replace its rules.
func LoadFormer(filename string, src []byte, kinds []Kind) (*Set, error) {
	return load(filename, src, kinds, true)
}

func load(filename string, src []byte, kinds []Kind, former bool) (*Set, error) {
	p := fileParser{kinds: kinds}
	p.Document = document.Read(filename, src, p.kinds.smallestFile())
	if p.Root == nil {
		return nil, problemsOf(&p.Findings)
	}
	ok := check(p, p.file(), former)
	if err := problemsOf(&p.Findings); err != nil {
		return nil, err
	}
	set := compile(filename, ok)
	set.text, set.given, set.warnings = string(src), kinds, problemList(p.Warnings())
	return set, nil
}

// compile makes the Set of a file without problems.
func compile(filename string, from *checked) *Set {
	s := &Set{file: filename, kinds: &keyKinds{}}
	s.Table = Table{Name: from.table.name.text, PartitionKey: from.table.keys[0].text, TypeAttribute: from.table.typeAttribute.text}
	if len(from.table.keys) > 1 {
		s.Table.SortKey = from.table.keys[1].text
	}
	entities := map[*checkedEntity]*Entity{}
	for _, ce := range from.entities {
		e := &Entity{Name: ce.decl.name.text, Index: len(s.Entities), Unique: ce.decl.unique.text, Equals: ce.equals, shape: ce.shape,
			unique:       ce.unique,
			partitionKey: s.Table.PartitionKey, sortKey: s.Table.SortKey}
		e.shape.kinds = s.kinds
		entities[ce] = e
		s.Entities = append(s.Entities, e)
	}
	reads := checker{file: &fileDecl{table: *from.table}}
	for _, cr := range from.rules {
		r := compileRule(cr, entities[cr.source], entities[cr.target])
		r.Reads, r.JoinReads = reads.readsOf(cr)
		r.Form = r.Kind.Compile(r, cr.decl)
		r.Fingerprint = s.fingerprint(r)
		s.Rules = append(s.Rules, r)
		hang(r)
	}
	return s
}

func compileRule(cr *checkedRule, source, target *Entity) *Rule {
	r := &Rule{Name: cr.decl.name.text, Kind: cr.decl.kind, Source: source, Target: target, Level: cr.level,
		ByUnique: cr.join.byUnique, join: cr.join, where: cr.where, expressions: cr.expressions}
	for _, w := range cr.writes {
		r.Writes = append(r.Writes, w.as.text)
		r.Attributes = append(r.Attributes, Attribute{As: w.as.text, From: w.from.text, Constant: w.constant})
	}
	r.Injective = r.MakesItems() && covers(r.join.fill, len(source.shape.variables))
	r.Collection = r.HasParent() && collects(r)
	return r
}

// covers reports whether every one of this side's variables fills something.
func covers(fill []ref, variables int) bool {
	for slot := range variables {
		if !slices.ContainsFunc(fill, func(r ref) bool { return r.slot == slot }) {
			return false
		}
	}
	return true
}

// collects reports whether the parent's variables give the children's
// partition, and the children's key alone names the parent.
func collects(r *Rule) bool {
	for _, from := range r.join.fill {
		if !from.isVariable() {
			return false
		}
	}
	for _, slot := range r.Target.shape.partition.Slots() {
		if !slices.ContainsFunc(r.join.fill, func(from ref) bool { return from.slot == slot }) {
			return false
		}
	}
	return true
}

// hang enters a rule with its entities.
func hang(r *Rule) {
	if r.HasParent() {
		r.Source.Parents = append(r.Source.Parents, r)
		r.Target.Children = append(r.Target.Children, r)
		return
	}
	if r.MakesItems() {
		r.Target.Makers = append(r.Target.Makers, r)
	} else {
		r.Target.Displays = append(r.Target.Displays, r)
	}
	r.Source.Sources = append(r.Source.Sources, r)
	r.Target.Located = r.Target.Located || r.ByUnique
}

// fingerprintLength is its length in hexadecimal characters: 64 bits.
const fingerprintLength = 16

// fingerprint digests all that the rule means, in one canonical text: not its
// name, not the order in which attributes are listed, not what only says how a
// value is kept and not what it is.
func (s *Set) fingerprint(r *Rule) string {
	var b strings.Builder
	fmt.Fprintf(&b, "1 %d %q %q\n", r.Kind.Traits().Number, s.Table.PartitionKey, s.Table.SortKey)
	r.Source.describe(&b)
	r.Target.describe(&b)
	fmt.Fprintf(&b, "join %t", r.ByUnique)
	theirs, ours := r.sides()
	refText := func(from ref) string {
		if from.isVariable() {
			return "$" + ours.shape.variables[from.slot]
		}
		return from.attribute
	}
	if r.ByUnique { // the engine finds the target by its entity's name and the value
		fmt.Fprintf(&b, " %q %q", r.Target.Name, refText(r.join.unique))
	} else {
		for slot, from := range r.join.fill {
			fmt.Fprintf(&b, " %q=%q", theirs.shape.variables[slot], refText(from))
		}
	}
	if r.where != nil {
		fmt.Fprintf(&b, "\nwhere %q", programText(r.where))
	}
	for i, e := range r.Kind.Traits().Expressions {
		if r.expressions[i] != nil {
			fmt.Fprintf(&b, "\n%s %q", e.Key, programText(r.expressions[i]))
		}
	}
	fmt.Fprintf(&b, "\n%s\n", strings.Join(slices.Sorted(slices.Values(r.Form.Meaning())), "\n"))
	digest := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(digest[:])[:fingerprintLength]
}

func (e *Entity) describe(b *strings.Builder) {
	fmt.Fprintf(b, "entity %q %q %q", e.shape.partition.Meaning(e.shape.variables), e.shape.sort.Meaning(e.shape.variables), e.Unique)
	var lines []string
	for _, eq := range e.Equals {
		lines = append(lines, fmt.Sprintf(" %q=%s", eq.Attribute, Canonical(eq.Value)))
	}
	slices.Sort(lines)
	fmt.Fprintln(b, strings.Join(lines, ""))
}

// Canonical writes a constant for a fingerprint.
func Canonical(v change.Value) string {
	return fmt.Sprintf("%s:%q:%t", v.Kind(), v.Text(), v.Bool())
}
