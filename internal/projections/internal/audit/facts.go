// Package audit compares what is derived with what the items ask for. All of
// it is pure: items and rows of the state table become facts, facts about one
// thing become suspects, and what was read of a suspect becomes findings. It
// keeps promise 1 in sight: what it calls right is what the engine, given the
// items anew, would derive.
package audit

import (
	"regexp"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/leftovers"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/tally"
)

// What facts are about begins with one of these, in the order in which they
// are judged: the ledger comes before the sums of what is in it. Families take others.
const (
	AboutEntry   = "1"
	AboutClaims  = "2"
	AboutLocator = "3"
	AboutMade    = "4" // an item that rules make; several may ask for it
	AboutSum     = "6" // what several sources add up to
	AboutSpot    = "7" // Sub says what is suspect: each fact is a suspect by itself
	AboutParked  = "8"
	AboutTask    = "9"
)

// The tags of facts.
const (
	TagWant   = 'w' // the items ask for it
	TagHave   = 'h' // it is there
	TagListed = 'p' // claims, locator: the target is listed as contested
	TagTorn   = 'a' // the engine cannot work with a row, as another program has written there
)

// Scope says what is judged.
type Scope struct {
	Rules   func(*plan.Binding) bool // of the rules in force
	Shown   func(*plan.Binding) bool // of those, aggregates that show what they add up to
	Formers bool                     // what retired rules left
}

// Auditor judges one table under one set of rules.
type Auditor struct {
	*plan.Planner
	scope    Scope
	judged   map[*plan.Binding]bool // rules in force
	locators map[string]bool        // by name

	families  []Family
	concerned map[string]bool // attributes that rules read or write
}

// New makes an auditor.
func New(p *plan.Planner, scope Scope) *Auditor {
	a := &Auditor{Planner: p, scope: scope, judged: map[*plan.Binding]bool{}, locators: map[string]bool{}, families: families(p),
		concerned: concernedBy(p)}
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
	if locator, ok := effects.LocatorIn(id); ok {
		return a.locators[locator] || a.wasLocator(locator)
	}
	if b := a.Former(id); b != nil {
		return a.scope.Formers && b.Retired.Load()
	}
	b := a.ByID(id)
	return b != nil && a.judged[b]
}

// wasLocator reports whether only retired rules found items by a locator: one that is still being retired may need it.
func (a *Auditor) wasLocator(locator string) bool {
	return a.scope.Formers && a.RetiredLocator(locator)
}

// InForce reports whether a rule is in force and judged.
func (a *Auditor) InForce(b *plan.Binding) bool { return a.judged[b] }

// Shows reports whether what a rule in force adds up is shown and judged.
func (a *Auditor) Shows(b *plan.Binding) bool {
	return a.judged[b] && a.scope.Shown(b) && b.Rule.Displays()
}

// Facts are what an item of the user's table says.
func (a *Auditor) Facts(key change.Key, img change.Image, emit func(drift.Fact)) {
	a.factsOfSource(key, img, emit)
	for id := range leftovers.On(a.Planner, key, img).All() {
		if a.judged[id.Binding] || id.Former && a.scope.Formers {
			EmitSuspect(drift.Leftover, id.ID, key, emit)
		}
	}
	s := &Subject{Key: key, Image: img}
	s.Match, _ = a.Set.Identify(key, img)
	for _, r := range a.Set.Rules {
		if b := a.Of(r); a.judged[b] {
			b.Family.(Family).Facts(a, b, s, emit)
		}
	}
}

// EmitSuspect says that something about an item is suspect, whatever other facts say.
func EmitSuspect(kind drift.Kind, id string, item change.Key, emit func(drift.Fact)) {
	emit(drift.Fact{About: About(AboutSpot, id, item.String()), Sub: string(kind), Tag: TagHave})
}

// About names what facts are about, apart from everything else.
func About(kind, id, text string) string { return kind + id + "\x00" + text }

func (a *Auditor) factsOfSource(key change.Key, img change.Image, emit func(drift.Fact)) {
	for k, f := range a.EffectsOf(key, img) {
		if !a.Judges(k.ID) {
			continue
		}
		emit(drift.Fact{About: About(AboutEntry, "", key.String()), Sub: k.String(), Tag: TagWant, Data: f.String(), With: a.sumOf(k.ID, f)})
		a.factsOfEffect(key, k, f, emit)
	}
}

// sumOf is what an entry's effect is part of: which entries are wrong has to be
// known to judge a sum.
func (a *Auditor) sumOf(id string, f effects.Effect) string {
	if f.Kind != effects.Contribution {
		return ""
	}
	return About(AboutSum, id, f.Group)
}

// factsOfEffect are what an effect asks of what several sources make together.
func (a *Auditor) factsOfEffect(key change.Key, k effects.Key, f effects.Effect, emit func(drift.Fact)) {
	id := k.ID
	switch f.Kind {
	case effects.Located:
		emit(drift.Fact{About: About(AboutLocator, id, f.Group), Sub: key.String(), Tag: TagWant})
	case effects.Parked:
		MustBeParked(id, key, f.Parked.Code, emit)
	default:
		b := a.ByID(id)
		b.Family.(Family).EffectFacts(a, b, key, k.For, f, emit)
	}
}

// RowFacts are what a row of the state table says. Rows whose keys are cut say
// nothing: what they are about can only be told from the items, by their key.
func (a *Auditor) RowFacts(row change.Item, emit func(drift.Fact)) {
	partition := row["pk"].Text()
	kind, rest, _ := strings.Cut(partition, "/")
	if item := row["item"].Text(); kind == "i" && item != "" {
		rest = item
	} else if cutForm.MatchString(partition) {
		return
	}
	id, name, _ := strings.Cut(rest, "/")
	switch kind {
	case "i":
		a.factsOfEntry(row, rest, emit)
	case "parked":
		a.factOfParked(row, emit)
	case "tasks":
		if strings.HasPrefix(row["sk"].Text(), RollupPrefix) {
			break // the display tells whether it is right
		}
		if id, parent := TaskOf(row); a.judged[a.ByID(id)] && TornTask(a.Planner, row) {
			emit(drift.Fact{About: About(AboutTask, id, parent.String()), Sub: row["sk"].Text(), Tag: TagTorn})
		}
	case "claims":
		if a.judged[a.ByID(id)] && !TornSet(row) {
			factsOfSet(About(AboutClaims, id, name), row["sources"], emit)
		}
	case "locator":
		if a.locators[id] && !TornSet(row) {
			factsOfSet(About(AboutLocator, effects.LocatorID(id), change.ParseKey(name).Partition), row["items"], emit)
		}
	}
	for _, f := range a.families {
		f.RowFacts(a, Row{row, kind, id, name}, emit)
	}
}

// factsOfEntry are the effects that a ledger entry has in force.
func (a *Auditor) factsOfEntry(row change.Item, item string, emit func(drift.Fact)) {
	if a.TornEntry(row) {
		emit(drift.Fact{About: About(AboutEntry, "", item), Tag: TagTorn})
	}
	texts, _ := effects.ReadTexts(row) // an entry that is torn is told already
	for k, text := range texts {
		if !a.Judges(k.ID) {
			continue
		}
		f, err := a.ParseEffect(k, text)
		if err == nil { // an effect that cannot be read is no part of a sum
			text = f.Wanted().String()
		}
		emit(drift.Fact{About: About(AboutEntry, "", item), Sub: k.String(), Tag: TagHave, Data: text, With: a.sumOf(k.ID, f)})
	}
}

// cutForm is how a key ends that was cut.
var cutForm = regexp.MustCompile(`~[0-9a-f]{64}(/|$)`)

func factsOfSet(about string, members change.Value, emit func(drift.Fact)) {
	if members.Kind() == change.KindStringSet {
		for _, member := range members.List() {
			emit(drift.Fact{About: about, Sub: member.Text(), Tag: TagHave})
		}
	}
}

// Combine adds up facts of the same thing, part and tag, where they are amounts.
func (a *Auditor) Combine(about string, tag byte, x, y string) (string, bool) {
	if !strings.HasPrefix(about, AboutSum) || tag != TagWant && tag != TagHave {
		return "", false
	}
	return tally.AddUp(x, []string{y}), true
}

// Concerns are the tokens of all that a record may be the cause of: of nothing,
// if it leaves every attribute as it was that a rule reads or writes.
func (a *Auditor) Concerns(rec *change.Record, emit func(token string)) {
	if rec.Old != nil && rec.New != nil && !a.touches(rec.Old, rec.New) && !a.touches(rec.New, rec.Old) {
		return
	}
	emit(drift.KeyToken(rec.Key))
	for _, img := range []change.Image{rec.Old, rec.New} {
		if img != nil {
			a.Facts(rec.Key, img, func(f drift.Fact) { emit(f.About) })
		}
	}
}

// touches reports whether an attribute of x that concerns rules is another one in y.
func (a *Auditor) touches(x, y change.Image) bool {
	for name, v := range x.All() {
		if (a.concerned[name] || strings.HasPrefix(name, stamp.Prefix)) && !v.Equal(y.Lookup(name)) {
			return true
		}
	}
	return false
}

// concernedBy are the attributes that rules read or write, or tell items by.
func concernedBy(p *plan.Planner) map[string]bool {
	all := map[string]bool{}
	note := func(r *rules.Rule) {
		for _, name := range slices.Concat(r.Reads, r.JoinReads, r.Writes) {
			all[name] = true
		}
		for _, e := range []*rules.Entity{r.Source, r.Target} {
			if e == nil {
				continue
			}
			all[e.Unique] = true
			for _, eq := range e.Equals {
				all[eq.Attribute] = true
			}
		}
	}
	for _, r := range p.Set.Rules {
		note(r)
	}
	for _, b := range p.Formers() {
		note(b.Rule)
	}
	return all
}

// SumToken and LocatorToken are tokens of what several sources make together.
func SumToken(id, group string) string { return About(AboutSum, id, group) }

// LocatorToken is that of a locator.
func LocatorToken(id, value string) string { return About(AboutLocator, id, value) }

// MadeToken is the token of all that happens to an item that rules make.
func MadeToken(target change.Key) string { return About(AboutMade, "", target.String()) }
