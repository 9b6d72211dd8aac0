package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/rules/internal/check"
	"github.com/dynamill/dynamill/internal/rules/internal/conflicts"
	"github.com/dynamill/dynamill/internal/rules/internal/declared"
	"github.com/dynamill/dynamill/internal/rules/internal/document"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// Load parses, checks and compiles a rule file that may have rules of these kinds.
// filename is for the problems only. The error is a *Problems that holds every problem found.
func Load(filename string, src []byte, kinds []Kind) (*Set, error) {
	return load(filename, src, kinds, false)
}

// LoadFormer is Load for a rule file that was in force once, with the placeholders of other tools as constants: the
// engine must read it to replace its rules.
func LoadFormer(filename string, src []byte, kinds []Kind) (*Set, error) {
	return load(filename, src, kinds, true)
}

func load(filename string, src []byte, kinds []Kind, former bool) (*Set, error) {
	p := declared.Parser{Former: former}
	for _, kind := range kinds {
		p.Kinds = append(p.Kinds, kind)
	}
	p.Document = document.Read(filename, src, p.Kinds.SmallestFile())
	if p.Root == nil {
		return nil, p.Err()
	}
	file := check.Check(p, p.File())
	conflicts.Check(p, file)
	if err := p.Err(); err != nil {
		return nil, err
	}
	set := compile(filename, file)
	set.text, set.ruleKinds, set.warnings = string(src), kinds, p.Warnings()
	return set, nil
}

func compile(filename string, from *check.File) *Set {
	s := &Set{file: filename, keyTypes: &templates.KeyTypes{}}
	table := from.Decl.Table
	s.Table = Table{Name: table.Name.Text, PartitionKey: table.Keys[0].Text, TypeAttribute: table.TypeAttribute.Text, Case: table.Case}
	if len(table.Keys) > 1 {
		s.Table.SortKey = table.Keys[1].Text
	}
	entities := map[*check.Entity]*Entity{}
	for _, ce := range from.Entities {
		e := &Entity{Name: ce.Decl.Name.Text, Index: len(s.Entities), Unique: ce.Decl.Unique.Text, Equals: ce.Equals, shape: ce.Shape,
			unique: ce.Unique, Table: s.Table, Derived: ce.Decl.Derived.Given(), Expire: ce.Expire,
			ExpireAttribute: ce.Decl.ExpireAttribute.Text}
		e.shape.Kinds = s.keyTypes
		entities[ce] = e
		s.Entities = append(s.Entities, e)
	}
	for _, cr := range from.Rules {
		r := compileRule(cr, entities[cr.Source], entities[cr.Target])
		r.Form = r.Kind.Compile(r, cr.Decl)
		r.Fingerprint = s.fingerprint(r)
		s.Rules = append(s.Rules, r)
		attachToEntities(r)
	}
	return s
}

func compileRule(cr *check.Rule, source, target *Entity) *Rule {
	r := &Rule{Name: cr.Decl.Name.Text, Kind: cr.Decl.Kind.(Kind), Source: source, Target: target, Level: cr.Level, Reads: cr.Reads,
		JoinReads: cr.ChildReads,
		ByUnique:  cr.Join.ByUnique, Each: Each{cr.Each.List.Text, cr.Each.As.Text}, Join: cr.Join, where: cr.Where, expressions: cr.Expressions}
	for _, pair := range cr.Decl.By {
		r.By = append(r.By, Joined{Theirs: pair.Theirs.Text, Ours: pair.Ours.Text, Bare: pair.IsBare(), Expression: pair.Ours.Expression})
	}
	if r.per = cr.Per; cr.Decl.Per.Given() {
		r.Per = Joined{Ours: cr.Decl.Per.Text, Expression: cr.Decl.Per.Expression}
	}
	for _, w := range cr.Writes {
		r.Writes = append(r.Writes, w.As.Text)
		r.Attributes = append(r.Attributes, Attribute{As: w.As.Text, From: w.From.Text, Constant: w.Constant, Template: w.Template})
	}
	for _, w := range cr.Decl.Shown {
		r.Shown = append(r.Shown, Attribute{As: w.As.Text, From: w.From.Text})
	}
	r.byName = indicesByName(r.Writes)
	r.Order = cr.Decl.Order.Text
	r.Injective = r.MakesItems() && r.Join.IsInjective()
	r.Collection = r.HasParent() && r.Join.Collects()
	return r
}

// indicesByName are the indices of names in the order of the names; nil if they stand in that order.
func indicesByName(names []string) []int {
	if slices.IsSorted(names) {
		return nil
	}
	indices := make([]int, len(names))
	for i := range indices {
		indices[i] = i
	}
	slices.SortFunc(indices, func(i, j int) int { return strings.Compare(names[i], names[j]) })
	return indices
}

// ByName returns values of Writes, given in their order, in the order of their names. So what is made of them does not depend on the order
// in which the file names the attributes.
func (r *Rule) ByName(values []change.Value) []change.Value {
	if r.byName == nil {
		return values
	}
	sorted := make([]change.Value, len(values))
	for at, i := range r.byName {
		sorted[at] = values[i]
	}
	return sorted
}

// attachToEntities enters a rule in the lists of the entities that it reads and writes.
func attachToEntities(r *Rule) {
	r.Pointed().Located = r.Pointed().Located || r.ByUnique
	if r.HasParent() {
		r.Source.Parents = append(r.Source.Parents, r)
		r.Target.Children = append(r.Target.Children, r)
		return
	}
	if r.WritesSource() {
		r.Target.Own = append(r.Target.Own, r)
		return
	}
	if r.MakesItems() {
		r.Target.Makers = append(r.Target.Makers, r)
	}
	if r.Displays() {
		r.Target.Displays = append(r.Target.Displays, r)
	}
	if !r.Folds() {
		r.Source.Sources = append(r.Source.Sources, r)
	}
}

// fingerprintLength is its length in hexadecimal characters: 64 bits.
const fingerprintLength = 16

// fingerprint digests all that the rule means, in one canonical text: not its name, not the order of its attributes,
// not how a value is kept.
func (s *Set) fingerprint(r *Rule) string {
	var b strings.Builder
	fmt.Fprintf(&b, "1 %d %q %q\n", r.Kind.Traits().Number, s.Table.PartitionKey, s.Table.SortKey)
	r.Source.describe(&b)
	r.Target.describe(&b)
	if r.Derives() {
		fmt.Fprintf(&b, "derived %s %q\n", r.Target.Expire, r.Target.ExpireAttribute)
	}
	fmt.Fprintf(&b, "join %t", r.ByUnique)
	if r.ByUnique { // the engine finds the other side by its entity's name and the value
		fmt.Fprintf(&b, " %q %q", r.Pointed().Name, r.Join.Unique.Meaning(r.Join.Ours))
	} else {
		for slot, from := range r.Join.Fill {
			fmt.Fprintf(&b, " %q=%q", r.Join.Theirs.Variables[slot], from.Meaning(r.Join.Ours))
		}
	}
	if r.Each.Given() {
		fmt.Fprintf(&b, "\neach %q %q", r.Each.List, r.Each.As)
	}
	if r.HasPer() {
		fmt.Fprintf(&b, "\nper %q", r.per.Meaning(r.Join.Ours))
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
	partition, sort := e.shape.Meanings()
	fmt.Fprintf(b, "entity %q %q %q", partition, sort, e.Unique)
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

// ConstantsText shows attributes with their constants as the rule file has them, but for those that are absent.
func ConstantsText(constants map[string]change.Value) string {
	var parts []string
	for name, v := range constants {
		switch text := templates.NameText(name) + ": "; v.Kind() {
		case change.KindAbsent:
		case change.KindString:
			parts = append(parts, text+printable.Quoted(v.Text()))
		case change.KindBool:
			parts = append(parts, text+fmt.Sprint(v.Bool()))
		default:
			parts = append(parts, text+v.Text())
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
