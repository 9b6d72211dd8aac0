package projections

import "github.com/dynamill/dynamill/change"

// Matches counts the items and records that the engine looked at, by their entities.
type Matches struct {
	Entities         []EntityMatches // in the order of the rule file
	UnmatchedItems   int64           // of no entity
	UnmatchedRecords int64
	Unmatched        []change.Key // examples, at most three
	Looked           int64        // items of the pass, those that vanished meanwhile among them
	Whole            bool         // the process seeded rules and looked at all items of the table for it
	Pass             string       // the pass over the table in which the items were looked at; "" if there was none
	Items, Records   int64        // looked at, by this process; Items in the last pass alone
	Cases            []CaseMismatch
}

// EntityMatches counts the items and records of one entity.
type EntityMatches struct {
	Entity         string
	Items, Records int64
	KeyOnly        int64    // of Items, those that only their keys told, although the entity also asks for attributes
	Rules          []string // that read or write its items and do not make them
}

// CaseMismatch is an attribute whose text differs in letter case alone from the key variable of its
// name, where rules compare the two.
type CaseMismatch struct {
	Entity         string
	Item           change.Key // an example
	Rules          []string   // that find nothing because of it
	Variable       string
	Attribute, Key string // the text of the attribute, and the variable's in the key
}

// MissingTargets says of one rule at which items its sources point although they do not exist. Of a
// copy rule the parents are the targets, and the children point at them.
type MissingTargets struct {
	Rule      string
	Entity    string // of the targets
	Unique    string // the name of the unique value by which the rule finds its targets; "" if by their key
	Sources   int64  // that point at them
	Targets   int64  // that do not exist
	About     bool   // the two numbers are of a sample, or there are more than the engine remembers
	All       bool   // no source of the rule points at a target that exists
	Examples  []string
	OtherCase *OtherCase
}

// OtherCase is a target that does not exist, and one that does and differs in letter case alone.
type OtherCase struct{ Missing, Exists string }

// Warns reports whether the rule, rather than some items, seems to be wrong.
func (m MissingTargets) Warns() bool { return m.All || m.OtherCase != nil }
