package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
)

// Load parses, checks and compiles a rule file. filename is for the problems
// only. The error is a *Problems that holds every problem found.
func Load(filename string, src []byte) (*Set, error) { return load(filename, src, false) }

// LoadFormer is Load for a rule file that was in force once. A placeholder of
// another tool is a constant, as it was then. Such a file derived nothing, and the
// engine must still read it to replace its rules.
func LoadFormer(filename string, src []byte) (*Set, error) { return load(filename, src, true) }

func load(filename string, src []byte, former bool) (*Set, error) {
	d := readDocument(filename, src)
	if d.root == nil {
		return nil, d.problems()
	}
	file := fileParser{d}.file()
	ok := check(d, file, former)
	if err := d.problems(); err != nil {
		return nil, err
	}
	set := compile(filename, ok)
	set.text, set.warnings = string(src), sortedByPlace(d.warnings)
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
		e := &Entity{Name: ce.decl.name.text, Index: len(s.Entities), Unique: ce.decl.unique.text, Equals: ce.equals, shape: ce.shape, unique: ce.unique,
			partitionKey: s.Table.PartitionKey, sortKey: s.Table.SortKey}
		e.shape.kinds = s.kinds
		entities[ce] = e
		s.Entities = append(s.Entities, e)
	}
	reads := checker{file: &fileDecl{table: *from.table}}
	for _, cr := range from.rules {
		r := compileRule(cr, entities[cr.source], entities[cr.target])
		source, child := reads.readsOf(cr)
		r.Reads, r.JoinReads = source, child
		r.Fingerprint = s.fingerprint(r)
		s.Rules = append(s.Rules, r)
		hang(r)
	}
	return s
}

func compileRule(cr *checkedRule, source, target *Entity) *Rule {
	d := cr.decl
	r := &Rule{Name: d.name.text, Kind: d.kind, Source: source, Target: target, Level: cr.level,
		ByUnique: cr.join.byUnique, join: cr.join, where: cr.where, amount: cr.amount}
	for _, w := range cr.writes {
		r.Writes = append(r.Writes, w.as)
		switch d.kind {
		case Mirror:
			r.sets = append(r.sets, mirrored{as: w.as, from: w.from, constant: w.constant})
		case Copy:
			copied := CopiedAttribute{From: w.from, As: w.as}
			for _, m := range d.ifMissing {
				if m.name.text == w.as {
					copied.IfMissing = m.value
				}
			}
			r.Copies = append(r.Copies, copied)
		}
	}
	switch d.kind {
	case Count, Sum:
		r.WriteShards = d.writeShards
	case Mirror:
		r.Injective = covers(r.join.fill, len(source.shape.variables))
	case Copy:
		r.Collection = collects(r)
	}
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
	for _, p := range r.Target.shape.partition.parts {
		if p.slot != literalPart && !slices.ContainsFunc(r.join.fill, func(from ref) bool { return from.slot == p.slot }) {
			return false
		}
	}
	return true
}

// hang enters a rule with its entities.
func hang(r *Rule) {
	switch r.Kind {
	case Copy:
		r.Source.Parents = append(r.Source.Parents, r)
		r.Target.Children = append(r.Target.Children, r)
		return
	case Mirror:
		r.Target.Mirrors = append(r.Target.Mirrors, r)
	default:
		r.Target.Displays = append(r.Target.Displays, r)
	}
	r.Source.Sources = append(r.Source.Sources, r)
	r.Target.Located = r.Target.Located || r.ByUnique
}

// fingerprintLength is its length in hexadecimal characters: 64 bits.
const fingerprintLength = 16

// fingerprint digests all that the rule means, in one canonical text: not its
// name, not the order in which attributes are listed, not write_shards, which
// says how a value is kept and not what it is.
func (s *Set) fingerprint(r *Rule) string {
	var b strings.Builder
	fmt.Fprintf(&b, "1 %d %q %q\n", r.Kind, s.Table.PartitionKey, s.Table.SortKey)
	r.Source.describe(&b)
	r.Target.describe(&b)
	fmt.Fprintf(&b, "join %t", r.ByUnique)
	theirs, ours := r.Target, r.Source
	if r.Kind == Copy {
		theirs, ours = r.Source, r.Target
	}
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
		fmt.Fprintf(&b, "\nwhere %q", strings.TrimSpace(r.where.String()))
	}
	if r.amount != nil {
		fmt.Fprintf(&b, "\nsum %q", strings.TrimSpace(r.amount.String()))
	}
	var lines []string
	for _, c := range r.Copies {
		lines = append(lines, fmt.Sprintf("copy %q %q %s", c.As, c.From, constantText(c.IfMissing)))
	}
	for _, m := range r.sets {
		lines = append(lines, fmt.Sprintf("set %q %q %s", m.as, m.from, constantText(m.constant)))
	}
	if r.Kind == Count || r.Kind == Sum {
		lines = append(lines, fmt.Sprintf("as %q", r.Writes[0]))
	}
	slices.Sort(lines)
	fmt.Fprintf(&b, "\n%s\n", strings.Join(lines, "\n"))
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:])[:fingerprintLength]
}

func (e *Entity) describe(b *strings.Builder) {
	fmt.Fprintf(b, "entity %q %q %q", e.shape.partition.meaning(e.shape.variables), e.shape.sort.meaning(e.shape.variables), e.Unique)
	var lines []string
	for _, eq := range e.Equals {
		lines = append(lines, fmt.Sprintf(" %q=%s", eq.Attribute, constantText(eq.Value)))
	}
	slices.Sort(lines)
	fmt.Fprintln(b, strings.Join(lines, ""))
}

func constantText(v change.Value) string {
	return fmt.Sprintf("%s:%q:%t", v.Kind(), v.Text(), v.Bool())
}
