package rules

import "github.com/dynamill/dynamill/change"

// What a rule file says, with places, before anything is checked against
// anything else.
type (
	// word is a text with its place.
	word struct {
		place
		text string
		node *node // the whole value that it is part of
	}
	fileDecl struct {
		table    tableDecl
		entities []entityDecl
		rules    []ruleDecl
	}
	tableDecl struct {
		name, typeAttribute word
		keys                []word // one or two; none if they could not be read
	}
	entityDecl struct {
		name   word
		key    []fieldWord // attribute: template
		unique word
		match  []constant
	}
	fieldWord struct{ name, value word }
	constant  struct {
		name  word
		value change.Value
	}
	ruleDecl struct {
		name word
		kind Kind
		at   place // of the key that gives the kind

		source, target word // entities; copy: from and to
		attribute      word // count, sum: what the target shows it in
		pairs          []pair
		by             []joinPair
		hasBy          bool
		where, sum     word
		set, ifMissing []constant
		writeShards    int
		keys           []field // as written, for places
	}
	// pair is "a as b" of copy or attributes.
	pair struct{ from, as word }
	// joinPair is one pair of `by`: the other side's name and ours.
	joinPair struct{ theirs, ours word }
)

func (w word) given() bool { return w.text != "" }

// place of the rule's key, or of the rule's name where it has no such key.
func (r *ruleDecl) placeOf(key string) place {
	for _, f := range r.keys {
		if f.name == key {
			return f.place
		}
	}
	return r.name.place
}
