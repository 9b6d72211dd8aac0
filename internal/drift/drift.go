// Package drift holds the words in which an audit is told, for its readers of tables and rules (projections) and its driver
// (internal/replay/verify), which know nothing of each other. It imports change alone.
package drift

import (
	"slices"

	"github.com/dynamill/dynamill/change"
)

// Fact is what an item says of something derived. Facts about the same thing sort together: by About, Sub and Tag.
type Fact struct {
	About string // what it is about, e.g. one aggregate
	Sub   string // which part of it, e.g. one child of a parent
	Tag   byte   // says how to read Data
	Data  string
	With  string // another subject: a sample that includes it includes this fact, too; "" if none
}

// Kind is a kind of derived data that can drift. A family of rules may add kinds of its own.
type Kind string

// The kinds that all families share, as results show them.
const (
	Entry     Kind = "ledger entry"
	Claims    Kind = "claims"
	Locator   Kind = "locator"
	Reference Kind = "reference"
	Position  Kind = "parent's position"
	Sum       Kind = "accumulator"
	Display   Kind = "displayed value"
	Leftover  Kind = "leftover" // of a rule that does not write on the item any more
	Parked    Kind = "parked record"
	Task      Kind = "task"
)

// Suspect is a difference that a scan found. A scan is no snapshot, so it only says where to look again.
type Suspect struct {
	Kind  Kind       `json:"kind"`
	Rule  string     `json:"rule,omitempty"`  // its id, or "@" and the entity of a locator
	Item  change.Key `json:"item,omitzero"`   // the item that is derived, or whose entry it is
	Group string     `json:"group,omitempty"` // the aggregate or unique value; reference: the parent; task: the sort key of its row
	// Mirror, claims, locator: the sources or items that the scan saw; display: the first item of the group.
	Members []string `json:"members,omitempty"`
	Sort    string   `json:"sort,omitempty"` // member row: its sort key
	Want    string   `json:"want,omitempty"` // sum, display: the amount to which the items of the scan add up
}

// ID names a suspect.
func (s Suspect) ID() string {
	return string(s.Kind) + "\x00" + s.Rule + "\x00" + s.Group + "\x00" + s.Item.String() + "\x00" + s.Sort
}

// What is wrong with what was found.
type What string

// The ways to drift.
const (
	Missing  What = "missing"
	Wrong    What = "wrong"
	Surplus  What = "surplus"
	Orphaned What = "orphaned"
)

// Finding is one difference between what is derived and what should be.
type Finding struct {
	Rule       string     `json:"rule"` // the rule's name, or "unique <Entity>" of a locator
	Kind       Kind       `json:"kind"`
	What       What       `json:"what,omitempty"`
	Item       change.Key `json:"-"`                   // the item that is derived, or whose entry it is
	Group      string     `json:"group,omitempty"`     // sum, locator: of which aggregate or value
	Attribute  string     `json:"attribute,omitempty"` // of a copy, a display or a mirror item
	Expected   string     `json:"expected"`            // as a person reads it; "" is none
	Found      string     `json:"found"`
	WriteUnits float64    `json:"writeUnits"` // about what mending it costs
}

// Reading is a suspect as fresh reads show it.
type Reading struct {
	Suspect  Suspect
	Findings []Finding // none: nothing is wrong
	State    string    // digests all that was read: equal only if nothing has moved
	Waiting  string    // why it is not to be judged now; "" if it is
	Excused  bool      // other findings are left out: they are parked
	Final    bool      // waiting is useless: it is parked, or its rule is not in force
	Concerns []string  // tokens; a record that has one of them and is not applied may be the cause
	Lags     bool      // sum: a record may be the cause; without it, none can be
	Optional bool      // it is no drift: it is listed, and mended only if that is asked for by itself
	Torn     bool      // another program has written in the row: no record explains it, and the engine cannot work with it
	Fix      Fix
}

// ReadingOf is a reading of what only a suspect's item says, before anything is found in it.
func ReadingOf(s Suspect, state string) Reading {
	return Reading{Suspect: s, State: state, Concerns: []string{KeyToken(s.Item)}, Fix: Fix{Keys: []change.Key{s.Item}}}
}

// Found reports whether something was found to be wrong in this way.
func (r Reading) Found(what What) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.What == what })
}

// Way is how what was found is mended.
type Way int

// The ways to mend.
const (
	Rederive  Way = iota // the items of the fix are rederived
	MendFirst            // the auditor mends it, and then the items are rederived
	MendAlone            // the auditor mends it, which is all
)

// Stage is when a reading is mended: what depends on other readings follows them.
type Stage int

// The stages of a repair, of which StageRest is the last.
const (
	StageRest    Stage = iota
	StageEntries       // ledger entries, on which all else depends
	StageSets          // sets that list what entries name
	StageItems         // items that rules make, on which other rules write
)

// Fix says how to mend a reading.
type Fix struct {
	Way    Way
	Stage  Stage
	Keys   []change.Key // items to be rederived
	Adjust []Amount     // entry: what must be added to the ledger's sums because this entry is wrong
	Seen   string       // sum, and the displays of it: the count of changes that was read
	Lacks  string       // sum: the amount to be added
	Should []string     // locator, claims: the items that belong there
}

// Amount is a part of an aggregate.
type Amount struct {
	Rule, Group string
	Value       string // as an Auditor adds it up
}

// KeyToken is the token of all that happens to an item: what a suspect and a record have in common.
func KeyToken(key change.Key) string { return "key\x00" + key.String() }

// GroupID names the aggregate that a suspect is about.
func (s Suspect) GroupID() string { return s.Rule + "\x00" + s.Group }

// ID names the aggregate of an amount, as GroupID does.
func (a Amount) ID() string { return a.Rule + "\x00" + a.Group }
