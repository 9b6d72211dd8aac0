package plan

import (
	"fmt"
	"strconv"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/rules"
)

// Entry is a ledger entry: the engine's memory of one source item.
type Entry struct {
	At        stamp.Version // last position applied
	Rederived int64         // times the item was rederived at that position
	Effects   effects.ByKey // in force
	Due       []string      // groups that lost a contribution which no image shows; see Move.Due
}

// ReadEntry reads a ledger entry; nil for a row that is not there. The error says what another program has written there.
func (p *Planner) ReadEntry(row change.Item) (*Entry, error) {
	if len(row) == 0 {
		return nil, nil
	}
	at, readable := p.readAt(row["a"])
	if !readable {
		return nil, fmt.Errorf("the position %q", row["a"].Text())
	}
	times, readable := readTimes(row["rederived"])
	if !readable {
		return nil, fmt.Errorf("the count of rederivations %q", row["rederived"].Text())
	}
	texts, err := effects.ReadTexts(row)
	if err != nil {
		return nil, err
	}
	e := &Entry{At: at, Rederived: times, Effects: effects.ByKey{}}
	for k, text := range texts {
		f, err := p.readEffect(k, text)
		if err != nil {
			return nil, fmt.Errorf("%w for %s", err, k)
		}
		e.Effects[k] = f
	}
	if row["due"].Kind() == change.KindStringSet {
		for _, group := range row["due"].List() {
			e.Due = append(e.Due, group.Text())
		}
	}
	return e, nil
}

// readAt reads the position of an entry, which the registry's rules epoch can rise above.
func (p *Planner) readAt(v change.Value) (stamp.Version, bool) {
	at, readable := stamp.ReadVersion(v)
	return at, readable && (at.RulesEpoch() < stamp.EpochMax || p.Epoch >= stamp.EpochMax)
}

// readTimes reads a number of times. No row holds 0: a condition asks for the absence of it.
func readTimes(v change.Value) (int64, bool) {
	times, readable := ReadCount(v)
	return times, readable && times <= stamp.TimesMax && (times > 0 || v.Kind() == change.KindAbsent)
}

// Readable is the part of a torn ledger entry that can stay. Without a readable position it gets one before each record; without
// effects it expires.
func (p *Planner) Readable(row change.Item, expires time.Time) change.Item {
	at, readable := p.readAt(row["a"])
	if !readable {
		at = stamp.VersionAt(p.Epoch, change.Position{})
	}
	read := effects.ByKey{}
	texts, _ := effects.ReadTexts(row)
	for k, text := range texts {
		if f, err := p.readEffect(k, text); err == nil {
			read[k] = f
		}
	}
	left := change.Item{"a": change.String(string(at))}
	if len(read) > 0 {
		left["e"] = change.Set(change.KindStringSet, read.Texts())
	} else {
		left["ttl"] = change.Number(strconv.FormatInt(expires.Unix(), 10))
	}
	if times, readable := readTimes(row["rederived"]); readable && times > 0 {
		left["rederived"] = row["rederived"]
	}
	return left
}

// readEffect reads the effect under a key. It refuses one that the rule never has: to undo it would touch other things.
func (p *Planner) readEffect(k effects.Key, text string) (effects.Effect, error) {
	f, err := p.ParseEffect(k, text)
	if err == nil && !p.fits(k, f) {
		err = fmt.Errorf("the effect %q, which this rule never has", text)
	}
	return f, err
}

// fits reports whether a rule or a locator can have an effect. Rules that are not in force may have meant anything.
func (p *Planner) fits(k effects.Key, f effects.Effect) bool {
	if _, locator := effects.LocatorIn(k.ID); locator || f.Kind == effects.Located {
		return locator && k.For == "" && (f.Kind == effects.Located || f.Kind == effects.Parked)
	}
	b := p.ByID(k.ID)
	if b == nil {
		return true
	}
	feeder, ok := b.Family.(Feeder)
	if f.Kind == effects.Parked {
		return ok && (k.For == "" || b.Rule.Each.Given())
	}
	return ok && feeder.CanHave(p, b, k.For, f)
}

// IsTarget reports whether a rule can write on an item with a key.
func (p *Planner) IsTarget(r *rules.Rule, key change.Key) bool {
	return r.Target.HasKey(key) && (p.CanExist == nil || p.CanExist(key))
}

// CountMax is the highest count in one row that counts as readable: the sum of all rows of an aggregate still fits an int64.
const CountMax = 10_000_000_000_000_000

// ReadCount reads a count that an attribute holds, 0 if there is none; false for no whole number from 0 to CountMax.
func ReadCount(v change.Value) (int64, bool) {
	n, ok := ReadMembers(v)
	return max(n, 0), ok && n >= 0
}

// ReadMembers reads a count of members as ReadCount does. One row of an aggregate may have lost more than it gained.
func ReadMembers(v change.Value) (int64, bool) {
	if v.Kind() == change.KindAbsent {
		return 0, true
	}
	n, err := strconv.ParseInt(v.Text(), 10, 64)
	if v.Kind() != change.KindNumber || err != nil || n < -CountMax || n > CountMax {
		return 0, false
	}
	return n, true
}
