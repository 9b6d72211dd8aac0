package trees

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/auditing"
	"github.com/dynamill/dynamill/internal/projections/internal/children"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
)

// What an item shows is held to what its parent shows, whether that is right or not: if every item agrees with its parent, and every
// root with itself, all are right. A suspect is then judged by the items on its way to the root.

// placeDrift is the kind of drift of what an item shows of its place.
const placeDrift drift.Kind = "place in a tree"

// Drift implements childaudit.Family.
func (kind) Drift() drift.Kind { return placeDrift }

// shown is what an item shows, as a fact tells it.
type shown struct {
	Exists bool     `json:"x,omitempty"`
	Marked bool     `json:"m,omitempty"` // a stamp tells the depth
	Depth  int      `json:"d,omitempty"`
	Path   string   `json:"p,omitempty"`
	Named  bool     `json:"n,omitempty"` // there is a path
	IDs    []string `json:"i,omitempty"`
	Other  string   `json:"o,omitempty"` // a digest of attributes that hold neither
	Name   string   `json:"a,omitempty"` // of the item itself
	HasOwn bool     `json:"h,omitempty"`
	ID     string   `json:"k,omitempty"`
}

// shownBy is what an item shows, right or wrong.
func shownBy(p *plan.Planner, b *plan.Binding, key change.Key, item change.Image) shown {
	v := viewOf(p, b, key, item)
	if !v.exists {
		return shown{}
	}
	f, s := Of(b.Rule), shown{Exists: true, Marked: v.known, Depth: v.depth}
	path, lineage := f.heldBy(item)
	s.Path, s.Named = path.Text(), path.Kind() == change.KindString
	for _, v := range idsIn(lineage) {
		s.IDs = append(s.IDs, v.Text())
	}
	if !s.Marked {
		if s.Depth = len(s.IDs); s.Named && f.lineage == "" {
			s.Depth = 1
		}
	}
	if again := s.outcome(); !again.path.Equal(path) || !again.lineage.Equal(lineage) {
		s.Other = change.Digest(path, lineage)
	}
	return s
}

// outcome is what is shown, as far as it could be right.
func (s shown) outcome() outcome {
	o := outcome{depth: s.Depth}
	if s.Named {
		o.path = change.String(s.Path)
	}
	if len(s.IDs) > 0 {
		var ids []change.Value
		for _, id := range s.IDs {
			ids = append(ids, change.String(id))
		}
		o.lineage = change.List(ids)
	}
	return o
}

// is reports whether an outcome is shown.
func (s shown) is(o outcome) bool {
	found := s.outcome()
	return s.Other == "" && found.path.Equal(o.path) && found.lineage.Equal(o.lineage)
}

func encode(s shown) string {
	text, _ := json.Marshal(s) // of texts and numbers
	return string(text)
}

func decode(text string) (s shown) {
	_ = json.Unmarshal([]byte(text), &s) // what encode wrote
	return s
}

// Gives implements childaudit.Family.
func (kind) Gives(p *plan.Planner, b *plan.Binding, key change.Key, parent change.Image) string {
	return encode(shownBy(p, b, key, parent))
}

// Holds implements childaudit.Family.
func (kind) Holds(p *plan.Planner, b *plan.Binding, s *audit.Subject, _ children.Link) string {
	found, self := shownBy(p, b, s.Key, s.Image), ownOf(b, &s.Match, s.Image)
	found.Name, found.HasOwn, found.ID = self.name, self.named, self.id
	return encode(found)
}

// Agree implements childaudit.Family.
func (kind) Agree(b *plan.Binding, gives, holds string) bool {
	above, found := decode(gives), decode(holds)
	want := nameAndID{found.Name, found.ID, found.HasOwn}.below(b, view{exists: above.Exists, known: true, outcome: above.outcome()})
	return found.is(want) && (!above.Marked || !found.Marked || found.Depth == want.depth)
}

// Alone implements childaudit.Family.
func (kind) Alone(p *plan.Planner, b *plan.Binding, s *audit.Subject, l children.Link, emit func(drift.Fact)) {
	found, want := shownBy(p, b, s.Key, s.Image), outcomeWithoutParent(b, l, &s.Match, s.Image)
	if !found.is(want) || found.Marked && found.Depth != want.depth {
		audit.EmitSuspect(placeDrift, b.ID, s.Key, emit)
	}
}

// Facts implements audit.Family. An item that shows nothing may be in a cycle; its judge finds out.
func (k kind) Facts(a *audit.Auditor, b *plan.Binding, s *audit.Subject, emit func(drift.Fact)) {
	k.Auditing.Facts(a, b, s, emit)
	if s.Match.Entity != b.Rule.Target || !k.Link(b, &s.Match, s.Image).Refers {
		return
	}
	switch found := shownBy(a.Planner, b, s.Key, s.Image); found.Depth {
	case none:
		audit.MustBeParked(b.ID, s.Key, codeCycle, emit)
	case tooDeep:
		audit.MustBeParked(b.ID, s.Key, codeTooDeep, emit)
	}
}

// stepsUp are how many items above a suspect are read: what is farther away makes no difference.
const stepsUp = max(levelsMax+1, cycleMax)

var procedures = map[drift.Kind]*auditing.Procedure{
	placeDrift:   {Items: wayUp(), Judge: judgePlace, Parkings: parkingsOf, Tasks: tasksOf},
	drift.Parked: {Rows: auditing.Rows{auditing.ParkedRows}, Items: wayUp(), Judge: judgeParked, Mend: clearParked},
}

// Procedure implements auditing.Family.
func (k kind) Procedure(of drift.Kind) *auditing.Procedure {
	if p := procedures[of]; p != nil {
		return p
	}
	return k.Auditing.Procedure(of)
}

// wayUp reads a suspect, and one step after the other what is above it.
func wayUp() auditing.Items {
	steps := auditing.Items{auditing.OwnItem}
	for range stepsUp {
		steps = append(steps, nextUp)
	}
	return steps
}

func nextUp(e *auditing.Evidence, sus drift.Suspect) []change.Key {
	way := wayOf(e, sus)
	if !way.open {
		return nil
	}
	return []change.Key{way.next}
}

// way is what was read of a suspect and the items above it.
type way struct {
	items []member      // the suspect first
	end   children.Link // of the last of them
	cycle bool          // the suspect is in a cycle, of these items
	open  bool          // what is above was not read
	next  change.Key
}

func wayOf(e *auditing.Evidence, sus drift.Suspect) (w way) {
	b, seen := e.ByID(sus.Rule), map[change.Key]bool{}
	for at := sus.Item; ; at = w.end.Parent {
		item, read := e.Items[at]
		if !read && len(w.items) > 0 && !e.Looked(at) {
			w.open, w.next = len(w.items) <= stepsUp, at
			return w
		}
		l := children.LinkOf(e.Planner, b, at, table.Image(item))
		if !l.IsChild {
			return w // the item before is a root
		}
		w.items, w.end = append(w.items, member{at, item}), l
		seen[at] = true
		if !l.Refers {
			return w
		}
		if seen[l.Parent] {
			w.cycle = l.Parent == sus.Item
			return w
		}
	}
}

// truth is what a suspect must show, and the code under which it must be parked; "" for none.
func truth(e *auditing.Evidence, sus drift.Suspect) (outcome, string) {
	b, w := e.ByID(sus.Rule), wayOf(e, sus)
	switch {
	case len(w.items) == 1 && w.end.Bad != nil:
		return outcome{}, w.end.Bad.Code
	case w.cycle && isListed(w.items):
		return outcome{}, codeCycle
	case w.open || w.end.Bad != nil || w.inCircle():
		return outcome{}, ""
	}
	parent := view{}
	for _, m := range slices.Backward(w.items) {
		match := e.MatchOf(m.key, m.item)
		parent = view{exists: true, known: true, outcome: ownOf(b, &match, m.item).below(b, parent)}
	}
	if parent.depth == tooDeep {
		return parent.outcome, codeTooDeep
	}
	return parent.outcome, ""
}

// inCircle reports whether the way never comes to a root.
func (w way) inCircle() bool {
	return slices.ContainsFunc(w.items, func(m member) bool { return w.end.Refers && m.key == w.end.Parent })
}

func judgePlace(e *auditing.Evidence, sus drift.Suspect) drift.Reading {
	b, item := e.ByID(sus.Rule), e.Items[sus.Item]
	want, _ := truth(e, sus)
	way := wayOf(e, sus)
	reading := drift.ReadingOf(sus, "")
	for _, m := range way.items {
		reading.Concerns = append(reading.Concerns, drift.KeyToken(m.key))
	}
	if way.end.Refers { // to an item that is not there
		reading.Concerns = append(reading.Concerns, drift.KeyToken(way.end.Parent))
	}
	values := want.values(b)
	reading.State = change.Digest(append([]change.Value{auditing.RuleValue(b, item), change.Bool(len(way.items) > 0)}, values...)...)
	if len(way.items) > 0 {
		f := drift.Finding{Rule: b.Rule.Name, Kind: placeDrift, Item: sus.Item, WriteUnits: audit.UnitsOf(item)}
		reading.Findings = audit.CompareAttributes(f, b.Rule.Writes, values, item)
	}
	return reading
}

// tasksOf are where unfinished work on an item above a suspect is kept.
func tasksOf(e *auditing.Evidence, r *drift.Reading) (keys []table.Key) {
	for _, m := range wayOf(e, r.Suspect).items[1:] {
		id := plan.ItemRule{Binding: e.ByID(r.Suspect.Rule), Key: m.key}
		keys = append(keys, state.TaskKey(state.Task{Parent: id, Refill: true}))
	}
	return keys
}

// parkingsOf are where it is told that a suspect, or an item above it, cannot be written: what is below such an item keeps what it shows.
func parkingsOf(e *auditing.Evidence, r *drift.Reading, _ drift.Finding) (keys []table.Key) {
	for _, m := range wayOf(e, r.Suspect).items {
		keys = append(keys, parkedKey(plan.ItemRule{Binding: e.ByID(r.Suspect.Rule), Key: m.key}))
	}
	return keys
}

func judgeParked(e *auditing.Evidence, sus drift.Suspect) drift.Reading {
	_, code := truth(e, sus)
	reading := e.JudgeParked(sus, code)
	for _, m := range wayOf(e, sus).items {
		reading.Concerns = append(reading.Concerns, drift.KeyToken(m.key))
	}
	return reading
}

// clearParked deletes the parked record of an item that must not be parked, if it still refers as it did when it was read.
func clearParked(ctx context.Context, e *auditing.Evidence, r drift.Reading) (bool, error) {
	id := plan.ItemRule{Binding: e.ByID(r.Suspect.Rule), Key: r.Suspect.Item}
	return e.DeleteParked(ctx, r.Suspect, target.StillReads(e.Tables.Reader, id, Of(id.Rule).reads(), e.Items[id.Key])...)
}
