// Package audit compares what is derived with what the items ask for. All of
// it is pure: items and rows of the state table become facts, facts about one
// thing become suspects, and what was read of a suspect becomes findings. It
// keeps promise 1 in sight: what it calls right is what the engine, given the
// items anew, would derive.
package audit

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/rules"
)

// What facts are about begins with one of these, in the order in which they
// are judged: the ledger comes before the sums of what is in it.
const (
	aboutEntry   = "1"
	aboutClaims  = "2"
	aboutLocator = "3"
	aboutMirror  = "4"
	aboutCopies  = "5"
	aboutSum     = "6"
	aboutBare    = "7"
	aboutParked  = "8"
	aboutTask    = "9"
)

// The tags of facts.
const (
	tagWant   = 'w' // the items ask for it
	tagHave   = 'h' // it is there
	tagRefer  = 'r' // copies: a reference row
	tagShown  = 'd' // sum: what a target displays
	tagLeft   = 'l' // bare: a rule left something that it does not write there any more
	tagListed = 'p' // claims, locator: the target is listed as contested
	tagTorn   = 'a' // entry, sum, bare, task: the engine cannot work with a row, as another program has written there
)

// beyond stands for a sum that no DynamoDB number holds.
const beyond = "beyond"

// Scope says what is judged.
type Scope struct {
	Rules   func(*plan.Binding) bool // of the rules in force
	Shown   func(*plan.Binding) bool // of those, counts and sums that show what they add up to
	Formers bool                     // what retired rules left
}

// Auditor judges one table under one set of rules.
type Auditor struct {
	*plan.Planner
	scope    Scope
	judged   map[*plan.Binding]bool // rules in force
	locators map[string]bool        // by name

	concerned map[string]bool // attributes that rules read or write
}

// New makes an auditor.
func New(p *plan.Planner, scope Scope) *Auditor {
	a := &Auditor{Planner: p, scope: scope, judged: map[*plan.Binding]bool{}, locators: map[string]bool{}, concerned: concernedBy(p)}
	for _, r := range p.Set.Rules {
		if b := a.Of(r); scope.Rules(b) {
			a.judged[b] = true
			if r.ByUnique {
				a.locators[b.Locator] = true
			}
		}
	}
	return a
}

// Judges reports whether effects under an id (of a rule or a locator) are judged.
func (a *Auditor) Judges(id string) bool {
	if locator, ok := plan.LocatorIn(id); ok {
		return a.locators[locator] || a.wasLocator(locator)
	}
	if b := a.Former(id); b != nil {
		return a.scope.Formers && b.Retired.Load()
	}
	b := a.ByID(id)
	return b != nil && a.judged[b]
}

// wasLocator reports whether only retired rules found items by a locator.
func (a *Auditor) wasLocator(locator string) bool {
	return a.scope.Formers && !a.Locates(locator) && slices.ContainsFunc(a.Formers(), func(b *plan.Binding) bool {
		return b.Locator == locator && b.Retired.Load()
	})
}

// Shows reports whether a rule's aggregates are shown and judged.
func (a *Auditor) Shows(b *plan.Binding) bool {
	return a.judged[b] && a.scope.Shown(b) && b.Rule.Displays()
}

// Facts are what an item of the user's table says.
func (a *Auditor) Facts(key change.Key, img change.Image, emit func(drift.Fact)) {
	a.factsOfSource(key, img, emit)
	a.factsOfMirror(key, img, emit)
	for id := range a.LeftoversOn(key, img).All() {
		if a.judged[id.Binding] || id.Former && a.scope.Formers {
			emit(drift.Fact{About: about(aboutBare, id.ID, key.String()), Tag: tagLeft})
		}
	}
	m, ok := a.Set.Identify(key, img)
	if !ok {
		return
	}
	for _, r := range m.Entity.Displays {
		if b := a.Of(r); a.Shows(b) {
			a.factOfDisplay(b, key, &m, img, emit)
		}
	}
	for _, r := range m.Entity.Parents {
		if b := a.Of(r); a.judged[b] {
			emit(drift.Fact{About: about(aboutCopies, b.ID, key.String()), Tag: tagWant, Data: plan.DigestValues(r, r.Form.(rules.Giver).Given(img))})
		}
	}
	for _, r := range m.Entity.Children {
		if b := a.Of(r); a.judged[b] {
			a.factOfChild(b, key, &m, img, emit)
		}
	}
}

// about names what facts are about, apart from everything else.
func about(kind, id, text string) string { return kind + id + "\x00" + text }

func (a *Auditor) factsOfSource(key change.Key, img change.Image, emit func(drift.Fact)) {
	for id, f := range a.EffectsOf(key, img) {
		if !a.Judges(id) {
			continue
		}
		emit(drift.Fact{About: about(aboutEntry, "", key.String()), Sub: id, Tag: tagWant, Data: f.String(), With: a.sumOf(id, f)})
		a.factsOfEffect(key, id, f, emit)
	}
}

// sumOf is what an entry's effect is part of: which entries are wrong has to be
// known to judge a sum.
func (a *Auditor) sumOf(id string, f plan.Effect) string {
	if f.Kind != plan.Contribution {
		return ""
	}
	return about(aboutSum, id, f.Group)
}

// factsOfEffect are what an effect asks of what several sources make together.
func (a *Auditor) factsOfEffect(key change.Key, id string, f plan.Effect, emit func(drift.Fact)) {
	switch b := a.ByID(id); f.Kind {
	case plan.Contribution:
		if a.Shows(b) {
			emit(drift.Fact{About: about(aboutSum, id, f.Group), Tag: tagWant, Data: counted(f.Amount.String(), "1")})
		}
	case plan.Mirrored:
		target := f.Target.String()
		emit(drift.Fact{About: about(aboutMirror, "", target), Sub: id + "\x00" + key.String(), Tag: tagWant, Data: f.Digest})
		if !b.Rule.Injective {
			emit(drift.Fact{About: about(aboutClaims, id, target), Sub: key.String(), Tag: tagWant})
		}
	case plan.Located:
		emit(drift.Fact{About: about(aboutLocator, id, f.Value), Sub: key.String(), Tag: tagWant})
	case plan.Parked:
		mustBeParked(id, key, f.Parked.Code, emit)
	}
}

// factsOfMirror say how an item stands to the mirror rules that could have made it.
func (a *Auditor) factsOfMirror(key change.Key, img change.Image, emit func(drift.Fact)) {
	for _, r := range a.Set.Rules {
		if b := a.Of(r); r.MakesItems() && a.judged[b] && r.Target.HasKey(key) {
			data := plan.DigestOf(b, img)
			place := plan.PlaceOf(b, key, img)
			switch {
			case a.stamped(b, key, img):
				data += markStamped
			case place == plan.PlaceMade:
				data += markMade
			case place == plan.PlaceOccupied:
				data = markOccupied
			}
			emit(drift.Fact{About: about(aboutMirror, "", key.String()), Sub: b.ID + "\x00", Tag: tagHave, Data: data})
		}
	}
}

// The marks behind the digest of an item at a mirror's key; markOccupied stands alone.
const (
	markStamped  = " stamped"
	markMade     = " made" // by the engine, and carries no stamp of the rule
	markOccupied = "occupied"
)

func (a *Auditor) stamped(b *plan.Binding, key change.Key, img change.Image) bool {
	return img != nil && plan.Stamped(b, plan.StampContext(a.Incarnation, key, ""), img)
}

func (a *Auditor) factOfDisplay(b *plan.Binding, key change.Key, m *rules.Match, img change.Image, emit func(drift.Fact)) {
	value := shown(img.Lookup(b.Rule.Writes[0]))
	group, ok, err := b.Rule.Form.(rules.Adder).GroupOf(m, img)
	switch {
	case err != nil:
	case ok:
		count := a.CountShown(b, key, group, img)
		emit(drift.Fact{About: about(aboutSum, b.ID, group), Sub: key.String(), Tag: tagShown, Data: counted(value, strconv.FormatInt(count, 10))})
	case value != "":
		emit(drift.Fact{About: about(aboutBare, b.ID, key.String()), Tag: tagShown})
	}
}

// counted puts the count of operations behind what was counted.
func counted(value, count string) string { return value + "\x00" + count }

// CountShown is the count in the version of a stamp; 0 if there is none, and more
// than RaisedMax for a stamp that no count may be raised above.
func (a *Auditor) CountShown(b *plan.Binding, key change.Key, within string, img change.Image) int64 {
	context, v := plan.StampContext(a.Incarnation, key, within), img.Lookup(b.Stamp)
	highest := plan.Stamp{Context: context, Version: plan.VersionOf(a.Epoch, RaisedMax), Digest: "~"}.String()
	if v.Kind() == change.KindString && strings.HasPrefix(v.Text(), context+" ") && v.Text() > highest {
		return math.MaxInt64 // DynamoDB compares the texts, also of a stamp that cannot be read
	}
	s, ok := plan.ReadStamp(v, context)
	if !ok {
		return 0
	}
	return s.Version.Count()
}

// RaisedMax is the highest count that a stamp shows and a repair raises a row's count
// above. It leaves room for the changes to come: see plan.CountMax.
const RaisedMax = plan.CountMax / 10

// shown is what an attribute displays; "" for nothing, which 0 is equal to.
func shown(v change.Value) string {
	if v.Kind() == change.KindAbsent {
		return ""
	}
	if v.Kind() != change.KindNumber {
		return v.Kind().String() + " " + v.Text()
	}
	d, err := decimal.Parse(v.Text())
	if err != nil {
		return v.Text()
	}
	return countText(d)
}

func countText(d decimal.Decimal) string {
	if d.IsZero() {
		return ""
	}
	return d.String()
}

func (a *Auditor) factOfChild(b *plan.Binding, key change.Key, m *rules.Match, img change.Image, emit func(drift.Fact)) {
	parent, refers, bad := plan.ReferenceIn(b.Rule, m, img)
	switch {
	case bad != nil:
		mustBeParked(b.ID, key, bad.Code, emit)
	case refers:
		emit(drift.Fact{About: about(aboutCopies, b.ID, parent.String()), Sub: key.String(), Tag: tagHave, Data: plan.DigestOf(b, img)})
	case slices.ContainsFunc(b.Rule.Writes, func(name string) bool { return img.Lookup(name).Kind() != change.KindAbsent }):
		emit(drift.Fact{About: about(aboutBare, b.ID, key.String()), Tag: tagHave})
	}
}

// RowFacts are what a row of the state table says. Rows whose keys are cut say
// nothing: what they are about can only be told from the items, by their key.
func (a *Auditor) RowFacts(row change.Item, emit func(drift.Fact)) {
	partition := row["pk"].Text()
	kind, rest, _ := strings.Cut(partition, "/")
	if item := row["item"].Text(); kind == "item" && item != "" {
		rest = item
	} else if cutForm.MatchString(partition) {
		return
	}
	id, name, _ := strings.Cut(rest, "/")
	switch kind {
	case "item":
		a.factsOfEntry(row, rest, emit)
	case "parked":
		a.factOfParked(row, emit)
	case "tasks":
		if id, parent := TaskOf(row); a.judged[a.ByID(id)] && TornTask(a.Planner, row) {
			emit(drift.Fact{About: about(aboutTask, id, parent.String()), Sub: row["sk"].Text(), Tag: tagTorn})
		}
	case "sum":
		a.factOfAccumulator(row, id, name, emit)
	case "claims":
		if a.judged[a.ByID(id)] && !TornSet(row) {
			factsOfSet(about(aboutClaims, id, name), row["sources"], emit)
		}
	case "locator":
		if a.locators[id] {
			value := change.ParseKey(name).Partition
			if !TornSet(row) {
				factsOfSet(about(aboutLocator, plan.LocatorID(id), value), row["items"], emit)
			}
			for _, r := range a.Set.Rules { // its changes are counted in what displays a sum by it
				if b := a.Of(r); r.ByUnique && b.Locator == id && a.Shows(b) && row["changes"].Text() != "" {
					emit(drift.Fact{About: about(aboutSum, b.ID, value), Tag: tagHave, Data: counted("0", row["changes"].Text())})
				}
			}
		}
	case "parent":
		if b := a.ByID(id); b != nil && a.judged[b] && TornPosition(row) {
			emit(drift.Fact{About: about(aboutBare, id, name), Tag: tagTorn})
		}
	case "references":
		if b := a.ByID(id); b != nil && a.judged[b] && b.Rule.HasParent() && !b.Rule.Collection {
			emit(drift.Fact{About: about(aboutCopies, id, name), Sub: ChildOf(row), Tag: tagRefer})
		}
	}
}

// factsOfEntry are the effects that a ledger entry has in force.
func (a *Auditor) factsOfEntry(row change.Item, item string, emit func(drift.Fact)) {
	if a.TornEntry(row) {
		emit(drift.Fact{About: about(aboutEntry, "", item), Tag: tagTorn})
	}
	for id, effect := range row["effects"].Map() {
		if !a.Judges(id) {
			continue
		}
		text := effect.Text()
		f, err := plan.ParseEffect(text)
		if err == nil { // an effect that cannot be read is no part of a sum
			text = f.Asked().String()
		}
		emit(drift.Fact{About: about(aboutEntry, "", item), Sub: id, Tag: tagHave, Data: text, With: a.sumOf(id, f)})
	}
}

// cutForm is how a key ends that was cut.
var cutForm = regexp.MustCompile(`~[0-9a-f]{64}(/|$)`)

// ChildOf is the child that a reference names, as text.
func ChildOf(row change.Item) string {
	if child := row["child"].Text(); child != "" {
		return child
	}
	return row["sk"].Text()
}

func (a *Auditor) factOfAccumulator(row change.Item, id, name string, emit func(drift.Fact)) {
	b := a.ByID(id)
	at := strings.LastIndex(name, "/")
	if b == nil || at < 0 || !a.Shows(b) {
		return
	}
	of, value := about(aboutSum, id, change.ParseKey(name[:at]).Partition), row["value"].Text()
	if TornSum(row) {
		value = "0"
		emit(drift.Fact{About: of, Tag: tagTorn})
	}
	emit(drift.Fact{About: of, Tag: tagHave, Data: counted(value, row["operations"].Text())})
}

func factsOfSet(about string, members change.Value, emit func(drift.Fact)) {
	if members.Kind() == change.KindStringSet {
		for _, member := range members.List() {
			emit(drift.Fact{About: about, Sub: member.Text(), Tag: tagHave})
		}
	}
}

// Combine adds up facts of the same thing, part and tag, where they are amounts.
func Combine(about string, tag byte, x, y string) (string, bool) {
	if !strings.HasPrefix(about, aboutSum) || tag != tagWant && tag != tagHave {
		return "", false
	}
	x, n, _ := strings.Cut(x, "\x00")
	y, m, has := strings.Cut(y, "\x00")
	if !has {
		return addTexts(x, y), true
	}
	return counted(addTexts(x, y), addTexts(cmp.Or(n, "0"), cmp.Or(m, "0"))), true
}

func addTexts(x, y string) string {
	a, err := decimal.Parse(x)
	b, err2 := decimal.Parse(y)
	if err != nil || err2 != nil {
		return beyond
	}
	sum, err := a.Add(b)
	if err != nil {
		return beyond
	}
	return sum.String()
}

// Lacks is what is missing from have to be want; "" if nothing is. It reports
// false where no DynamoDB number tells.
func Lacks(want, have string) (string, bool) {
	a, err := decimal.Parse(want)
	b, err2 := decimal.Parse(have)
	if err != nil || err2 != nil {
		return "", false
	}
	d, err := a.Sub(b)
	if err != nil {
		return "", false
	}
	return countText(d), true
}

// Add adds up two amounts; Beyond if no DynamoDB number holds the sum.
func Add(x, y string) string { return addTexts(x, y) }
