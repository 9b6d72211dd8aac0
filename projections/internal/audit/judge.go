package audit

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/rules"
)

// membersMax bounds how many sources or items of one thing a suspect names.
// Those that its set lacks come first: the state table's own set names the others.
const membersMax = 1000

// Judge takes facts in their order and says what is suspect. It holds what is
// needed of one thing at a time, never all that is said of it.
type Judge struct {
	auditor *Auditor
	emit    func(drift.Suspect)
	pointed func(Pointed)
	about   string
	kind    string
	id      string
	text    string

	sub        string   // sets, entries: the part that is being compared
	want, have string   // of the part, or of the whole
	wants, has bool     //
	refers     bool     // copies: the part's reference row is there
	members    []string // sets, mirror items
	lacking    []string // sets: members that are not there
	asking     int      // sets: members that ask for being there
	listed     bool     // sets: listed as contested
	differs    bool
	asked      bool     // mirror items: by some rule
	unasked    []string // mirror items: rules whose stamp the item carries
	bounded    bool     // sums: no DynamoDB number holds one side
	torn       bool     // sums: an accumulator
	count      int64    // sums: of operations
	first      string   // sums: the target that displays; "" as long as there was none
	sources    int64    // sums, copies: that point at the target
	exists     bool     // copies: the parent is there
}

// Pointed is a target at which sources in force point: an item that displays a sum, or a parent.
type Pointed struct {
	Rule    string // its id
	Target  string // its key, or the unique value by which the rule finds it
	Sources int64
	Exists  bool
}

// Judge makes a judge that tells suspects to emit, and to pointed each target at which sources point.
func (a *Auditor) Judge(emit func(drift.Suspect), pointed func(Pointed)) *Judge {
	return &Judge{auditor: a, emit: emit, pointed: pointed}
}

// begin forgets what the last facts were about.
func (j *Judge) begin() { *j = Judge{auditor: j.auditor, emit: j.emit, pointed: j.pointed} }

// tellPointed tells of the target that the facts were about.
func (j *Judge) tellPointed(exists bool) {
	if j.sources > 0 && j.pointed != nil {
		j.pointed(Pointed{j.id, j.text, j.sources, exists})
	}
}

// Add takes the next fact.
func (j *Judge) Add(f drift.Fact) {
	if f.About != j.about {
		j.End()
		j.about, j.kind = f.About, f.About[:1]
		j.id, j.text, _ = strings.Cut(f.About[1:], "\x00")
	}
	switch j.kind {
	case aboutEntry, aboutClaims, aboutLocator, aboutParked:
		j.addToSet(f)
	case aboutMirror:
		j.addToMirror(f)
	case aboutCopies:
		j.addToCopies(f)
	case aboutSum:
		j.addToSum(f)
	case aboutTask:
		j.emit(drift.Suspect{Kind: drift.Task, Rule: j.id, Item: change.ParseKey(j.text), Group: f.Sub})
	case aboutBare:
		kind := map[byte]drift.Kind{tagShown: drift.Display, tagHave: drift.Copy, tagLeft: drift.Leftover, tagTorn: drift.Position}[f.Tag]
		j.emit(drift.Suspect{Kind: kind, Rule: j.id, Item: change.ParseKey(j.text)})
	}
}

// End judges what is left.
func (j *Judge) End() {
	switch j.kind {
	case aboutEntry, aboutClaims, aboutLocator, aboutParked:
		j.endPart()
		j.endSet()
	case aboutMirror:
		j.endMirrorRule()
		j.endMirror()
	case aboutCopies:
		j.endChild()
		j.tellPointed(j.exists)
	case aboutSum:
		j.judgeSum()
		j.tellPointed(j.first != "")
	}
	j.begin()
}

func (j *Judge) addToSet(f drift.Fact) {
	if f.Tag == tagListed {
		j.listed, j.differs = true, j.differs || f.Data != ""
		return
	}
	if f.Sub != j.sub {
		j.endPart()
		j.sub = f.Sub
	}
	if f.Tag == tagWant {
		j.wants, j.want = true, f.Data
	} else {
		j.has, j.have = true, f.Data
	}
}

func (j *Judge) endPart() {
	if !j.wants && !j.has {
		return
	}
	j.differs = j.differs || j.wants != j.has || j.want != j.have
	if j.wants {
		j.asking++
	}
	if j.has {
		appendSome(&j.members, j.sub)
	} else {
		appendSome(&j.lacking, j.sub)
	}
	j.wants, j.has, j.want, j.have = false, false, "", ""
}

func appendSome(list *[]string, text string) {
	if len(*list) < membersMax {
		*list = append(*list, text)
	}
}

func (j *Judge) endSet() {
	if j.kind == aboutClaims || j.kind == aboutLocator {
		j.differs = j.differs || j.listed != (j.asking > 1)
	}
	if !j.differs {
		return
	}
	members := slices.Concat(j.lacking, j.members)
	members = members[:min(len(members), membersMax)]
	switch j.kind {
	case aboutEntry:
		j.emit(drift.Suspect{Kind: drift.Entry, Item: change.ParseKey(j.text)})
	case aboutClaims:
		j.emit(drift.Suspect{Kind: drift.Claims, Rule: j.id, Item: change.ParseKey(j.text), Members: members})
	case aboutLocator:
		j.emit(drift.Suspect{Kind: drift.Locator, Rule: j.id, Group: j.text, Members: members})
	case aboutParked:
		j.emit(drift.Suspect{Kind: drift.Parked, Rule: j.id, Item: change.ParseKey(j.text)})
	}
}

// addToMirror takes, rule by rule, first how the item stands, then its sources
// in the order of their keys: the first one's content counts.
func (j *Judge) addToMirror(f drift.Fact) {
	id, source, _ := strings.Cut(f.Sub, "\x00")
	if id != j.sub {
		j.endMirrorRule()
		j.sub = id
	}
	if f.Tag == tagHave {
		j.has, j.have = true, f.Data
		return
	}
	if !j.wants {
		j.wants, j.want = true, f.Data
		j.members = append(j.members, source) // of every rule the first one, which counts
		return
	}
	appendSome(&j.members, source)
}

func (j *Judge) endMirrorRule() {
	if j.sub == "" {
		return
	}
	if j.wants {
		j.asked = true
		if j.have == markOccupied {
			j.emit(drift.Suspect{Kind: drift.Parked, Rule: j.sub, Item: change.ParseKey(j.text), Members: j.members})
		} else {
			j.differs = j.differs || !j.has || j.have != j.want+markStamped
		}
	} else if strings.HasSuffix(j.have, markStamped) || strings.HasSuffix(j.have, markMade) {
		j.unasked = append(j.unasked, j.sub)
	}
	j.wants, j.has, j.want, j.have = false, false, "", ""
}

func (j *Judge) endMirror() {
	if j.differs || !j.asked && len(j.unasked) > 0 {
		j.emit(drift.Suspect{Kind: drift.Mirror, Item: change.ParseKey(j.text), Members: j.members})
	}
}

// addToCopies takes first what the parent gives, then child by child.
func (j *Judge) addToCopies(f drift.Fact) {
	if f.Tag == tagWant {
		j.wants, j.want, j.exists = true, f.Data, true
		return
	}
	if !j.wants {
		r := j.auditor.ByID(j.id).Rule
		j.wants, j.want = true, plan.DigestValues(r, r.Form.(rules.Giver).Given(nil))
	}
	if f.Sub != j.sub {
		j.endChild()
		j.sub = f.Sub
	}
	if f.Tag == tagHave {
		j.has, j.have = true, f.Data
		j.sources++
	} else {
		j.refers = true
	}
}

func (j *Judge) endChild() {
	if j.sub == "" {
		return
	}
	child := change.ParseKey(j.sub)
	b := j.auditor.ByID(j.id)
	if j.has && j.have != j.want {
		j.emit(drift.Suspect{Kind: drift.Copy, Rule: j.id, Item: child})
	}
	if !b.Rule.Collection && j.has != j.refers {
		j.emit(drift.Suspect{Kind: drift.Reference, Rule: j.id, Item: child, Group: j.text})
	}
	j.sub, j.has, j.refers = "", false, false
}

func (j *Judge) addToSum(f drift.Fact) {
	if f.Tag == tagShown {
		j.judgeSum()
		j.addDisplay(f)
		return
	}
	value, count, _ := strings.Cut(f.Data, "\x00")
	j.bounded = j.bounded || value == beyond
	if f.Tag == tagTorn {
		j.torn = true
	} else if f.Tag == tagWant {
		j.wants, j.want = true, countOf(value)
		j.sources, _ = strconv.ParseInt(count, 10, 64)
	} else {
		j.has, j.have = true, countOf(value)
		j.count, _ = strconv.ParseInt(count, 10, 64) // none is 0
	}
}

// judgeSum compares the two sums, once both are known.
func (j *Judge) judgeSum() {
	if !j.differs && (j.torn || !j.bounded && j.want != j.have) {
		j.differs = true
		j.emit(drift.Suspect{Kind: drift.Sum, Rule: j.id, Group: j.text, Want: j.want})
	}
}

// addDisplay judges one target. The first of those that are known by one unique value shows the sum, the others nothing.
func (j *Judge) addDisplay(f drift.Fact) {
	want := ""
	if j.first == "" {
		j.first, want = f.Sub, j.want
	}
	value, text, _ := strings.Cut(f.Data, "\x00")
	count, _ := strconv.ParseInt(text, 10, 64) // none is 0
	if !j.bounded && value != want || count > j.count {
		j.emit(drift.Suspect{Kind: drift.Display, Rule: j.id, Group: j.text, Item: change.ParseKey(f.Sub), Members: []string{j.first}, Want: want})
	}
}

// countOf writes an amount as displays are compared.
func countOf(text string) string { return shown(change.Number(text)) }

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
		if (a.concerned[name] || strings.HasPrefix(name, plan.StampPrefix)) && !v.Equal(y.Lookup(name)) {
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

// SumToken, MirrorToken and LocatorToken are tokens of what several sources make together.
func SumToken(id, group string) string { return about(aboutSum, id, group) }

// MirrorToken is that of a mirror item.
func MirrorToken(target change.Key) string { return about(aboutMirror, "", target.String()) }

// LocatorToken is that of a locator.
func LocatorToken(id, value string) string { return about(aboutLocator, id, value) }

// Adjustments are what aggregates lack because a ledger entry is not what the item asks for.
func (a *Auditor) Adjustments(want, have plan.Effects) []drift.Amount {
	var all []drift.Amount
	add := func(id string, f plan.Effect, sign bool) {
		if b := a.ByID(id); f.Kind == plan.Contribution && b != nil && !b.Rule.MakesItems() {
			value := f.Amount
			if !sign {
				value = value.Neg()
			}
			all = append(all, drift.Amount{Rule: id, Group: f.Group, Value: value.String()})
		}
	}
	for _, id := range want.IDs() {
		if f := want[id]; f.String() != have[id].String() {
			add(id, f, true)
		}
	}
	for _, id := range have.IDs() {
		if f := have[id]; f.String() != want[id].String() {
			add(id, f, false)
		}
	}
	return all
}
