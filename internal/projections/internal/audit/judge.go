package audit

import (
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
)

// Judge takes facts in their order and says what is suspect. It holds what is
// needed of one thing at a time, never all that is said of it.
type Judge struct {
	Auditor *Auditor
	Kind    string // what the facts are about: its kind,
	ID      string // the rule or locator,
	Text    string // and which of its things

	emit    func(drift.Suspect)
	pointed func(PointedTarget)
	about   string
	open    Case // nil: no fact has come yet
}

// PointedTarget is a target at which sources in force point: an item that displays a sum, or a parent.
type PointedTarget struct {
	Rule    string // its id
	Target  string // its key, or the unique value by which the rule finds it
	Sources int64
	Exists  bool
}

// Judge makes a judge that tells suspects to emit, and to pointed each target at which sources point.
func (a *Auditor) Judge(emit func(drift.Suspect), pointed func(PointedTarget)) *Judge {
	return &Judge{Auditor: a, emit: emit, pointed: pointed}
}

// Suspect tells that something about a key is suspect.
func (j *Judge) Suspect(s drift.Suspect) { j.emit(s) }

// Pointed tells of a target that the facts are about, if any source points at it.
func (j *Judge) Pointed(target string, sources int64, exists bool) {
	if sources > 0 && j.pointed != nil {
		j.pointed(PointedTarget{j.ID, target, sources, exists})
	}
}

// Key is the key that the facts are about.
func (j *Judge) Key() change.Key { return change.ParseKey(j.Text) }

// Add takes the next fact.
func (j *Judge) Add(f drift.Fact) {
	if j.open == nil || f.About != j.about {
		j.End()
		j.about, j.Kind = f.About, f.About[:1]
		j.ID, j.Text, _ = strings.Cut(f.About[1:], "\x00")
		j.open = j.newCase()
	}
	j.open.Add(f)
}

// End judges what is left.
func (j *Judge) End() {
	if j.open != nil {
		j.open.End()
	}
	j.open = nil
}

func (j *Judge) newCase() Case {
	switch j.Kind {
	case AboutEntry, AboutClaims, AboutLocator, AboutParked:
		return &setCase{Judge: j}
	case AboutSpot, AboutTask:
		return spotCase{j}
	}
	for _, f := range j.Auditor.families {
		if c := f.Case(j); c != nil {
			return c
		}
	}
	return spotCase{j}
}

// spotCase takes each fact for a suspect.
type spotCase struct{ *Judge }

// Add implements Case.
func (c spotCase) Add(f drift.Fact) {
	if c.Kind == AboutTask {
		c.emit(drift.Suspect{Kind: drift.Task, Rule: c.ID, Item: c.Key(), Group: f.Sub})
	} else {
		c.emit(drift.Suspect{Kind: drift.Kind(f.Sub), Rule: c.ID, Item: c.Key()})
	}
}

// End implements Case.
func (spotCase) End() {}

// membersMax bounds how many sources or items of one thing a suspect names.
// Those that its set lacks come first: the state table's own set names the others.
const membersMax = 1000

// Part is one part of a thing: what the items ask for, and what is there.
type Part struct {
	Sub        string
	Wants, Has bool
	Want, Have string
}

// setCase judges a ledger entry, a set of sources or items, or parked rows: part by part.
type setCase struct {
	*Judge
	part    Part
	members []string
	lacking []string // members that are not there
	asking  int      // members that ask for being there
	listed  bool     // as contested
	differs bool
}

// Add implements Case.
func (c *setCase) Add(f drift.Fact) {
	if f.Tag == TagListed {
		c.listed, c.differs = true, c.differs || f.Data != ""
		return
	}
	if f.Sub != c.part.Sub {
		c.endPart()
		c.part = Part{Sub: f.Sub}
	}
	if f.Tag == TagWant {
		c.part.Wants, c.part.Want = true, f.Data
	} else {
		c.part.Has, c.part.Have = true, f.Data
	}
}

func (c *setCase) endPart() {
	p := c.part
	if !p.Wants && !p.Has {
		return
	}
	c.differs = c.differs || p.Wants != p.Has || p.Want != p.Have
	if p.Wants {
		c.asking++
	}
	if p.Has {
		AppendSome(&c.members, p.Sub)
	} else {
		AppendSome(&c.lacking, p.Sub)
	}
}

// AppendSome appends to what a suspect names, as long as that is not too much.
func AppendSome(list *[]string, text string) {
	if len(*list) < membersMax {
		*list = append(*list, text)
	}
}

// End implements Case.
func (c *setCase) End() {
	c.endPart()
	if c.Kind == AboutClaims || c.Kind == AboutLocator {
		c.differs = c.differs || c.listed != (c.asking > 1)
	}
	if !c.differs {
		return
	}
	members := slices.Concat(c.lacking, c.members)
	members = members[:min(len(members), membersMax)]
	switch c.Kind {
	case AboutEntry:
		c.emit(drift.Suspect{Kind: drift.Entry, Item: c.Key()})
	case AboutClaims:
		c.emit(drift.Suspect{Kind: drift.Claims, Rule: c.ID, Item: c.Key(), Members: members})
	case AboutLocator:
		c.emit(drift.Suspect{Kind: drift.Locator, Rule: c.ID, Group: c.Text, Members: members})
	case AboutParked:
		c.emit(drift.Suspect{Kind: drift.Parked, Rule: c.ID, Item: c.Key()})
	}
}
