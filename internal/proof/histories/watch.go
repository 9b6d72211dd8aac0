package histories

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/proof/adversary"
	"github.com/dynamill/dynamill/internal/proof/mutants/switches"
	"github.com/dynamill/dynamill/internal/proof/oracle"
	"github.com/dynamill/dynamill/internal/rules"
)

// watch judges every write of a worker to the table as it happens: what heals
// itself later is not seen in the end, and yet was visible.
func (l *life) watch(w *adversary.Worker, before, after change.Item) {
	if len(l.outcome.Problems) > 0 {
		return
	}
	if after == nil {
		switches.InForce(func() {
			l.judgeDeletion(w, before)
			l.judgeMembers(w, before, false)
		})
		return
	}
	delete(l.app.expired, l.Population.Key(after))
	switches.InForce(func() {
		l.judgeMark(w, before, after)
		if before == nil {
			l.judgeMembers(w, after, true)
		}
		key := l.Population.Key(after)
		m, ok := l.Population.Set.Identify(key, after)
		known := l.registry()
		for _, r := range l.Population.Set.Rules {
			if id, inForce := known.ids[r]; inForce && len(r.Writes) > 0 && (!r.MakesItems() || r.Derives()) && ok && m.Entity == r.Target {
				l.judgeStamp(w, r, id, &m, before, after)
			}
		}
	})
	l.answer(after)
}

// judgeDeletion says whether a worker deleted what is not the engine's (promise 8).
func (l *life) judgeDeletion(w *adversary.Worker, before change.Item) {
	if before == nil {
		return
	}
	key := l.Population.Key(before)
	context := l.contextOf(key, "")
	for r, id := range l.registry().ids {
		if l.single && w.RuleFile() == l.Population.File && r.MakesItems() &&
			strings.HasPrefix(before.Lookup(stampPrefix+id).Text(), context) {
			l.problem("%s deletes %s as left by a former rule, but %s has it: %s", w, key, r.Name, told(before))
		}
	}
	if !oracle.Made(key, before) && !l.isDerived(key) {
		l.judgeCascade(w, key, before)
	}
	delete(l.app.base, key) // what the application put on it goes with it
}

// judgeMark says whether a worker makes an item that is not marked as made, takes
// one for its own that it did not make, or writes on another entity's item where a
// mirror item belongs (promise 8).
func (l *life) judgeMark(w *adversary.Worker, before, after change.Item) {
	key := l.Population.Key(after)
	switch {
	case before == nil && !oracle.Made(key, after):
		l.problem("%s makes %s without a mark: %s", w, key, told(after))
	case before == nil || oracle.Made(key, before):
	case l.isDerived(key):
	case oracle.Made(key, after):
		l.problem("%s marks %s as its own, which it did not make: %s", w, key, told(before))
	case l.occupies(key, before) && !onlyTakesOff(before, after):
		l.problem("%s writes on %s, which is of another entity: from %s to %s", w, key, told(before), told(after))
	}
}

// judgeMembers says whether a worker made a derived item to which nothing contributes, or deleted one that has members (promise 3).
// The rows are as they were when the write took effect.
func (l *life) judgeMembers(w *adversary.Worker, it change.Item, there bool) {
	key := l.Population.Key(it)
	if l.single || w.RuleFile() != l.Population.File || !l.isDerived(key) {
		return
	}
	ids := l.registry().ids
	members, told := int64(0), false
	for _, r := range l.Population.Set.Rules {
		if !r.Derives() || !r.Target.HasKey(key) {
			continue
		}
		if id, known := ids[r]; !known || !l.isLive(id) {
			return
		} else if n, ok := l.members(id, key); ok {
			members, told = members+n, true
		}
	}
	if told && (members > 0) != there {
		l.problem("%s writes or deletes the derived item %s, which has %d members", w, key, members)
	}
}

// members are those that the accumulators of a rule count for one derived item; false if there are none, or their keys are cut.
func (l *life) members(id string, key change.Key) (members int64, ok bool) {
	rows, err := items(l.crew.Sim, stateTableName)
	if err != nil {
		return 0, false
	}
	group := strings.NewReplacer("%", "%25", "/", "%2F").Replace(key.String())
	for _, row := range rows {
		if strings.HasPrefix(row["pk"].Text(), "sum/"+id+"/"+group+"/") {
			n, _ := strconv.ParseInt(row["members"].Text(), 10, 64)
			members, ok = members+n, true
		}
	}
	return members, ok
}

// isDerived reports whether rules make items with a key together: whatever stands there is theirs.
func (l *life) isDerived(key change.Key) bool {
	derived := func(set *rules.Set) bool {
		return slices.ContainsFunc(set.Rules, func(r *rules.Rule) bool { return r.Derives() && r.Target.HasKey(key) })
	}
	return derived(l.Population.Set) || slices.ContainsFunc(l.former, derived)
}

// occupies reports whether an item with a mirror item's key is of another entity.
func (l *life) occupies(key change.Key, it change.Item) bool {
	m, _ := l.Population.Set.Identify(key, it)
	return slices.ContainsFunc(l.Population.Set.Rules, func(r *rules.Rule) bool {
		return r.MakesItems() && r.Target != m.Entity && r.Target.HasKey(key)
	})
}

// onlyTakesOff reports whether a write does nothing but take stamps off an item, with what was written under them.
func onlyTakesOff(before, after change.Item) bool {
	stamped := slices.ContainsFunc(slices.Collect(maps.Keys(before)), func(name string) bool { return strings.HasPrefix(name, stampPrefix) })
	for name, v := range after {
		if !v.Equal(before[name]) && !strings.HasPrefix(name, stampPrefix) {
			return false
		}
	}
	return stamped
}

// judgeStamp says whether a worker took a step back (promise 3), wrote what the
// item does not ask for any more, or showed a sum before it was whole (promise 10).
func (l *life) judgeStamp(w *adversary.Worker, r *rules.Rule, id string, m *rules.Match, before, after change.Item) {
	if r.WritesSource() {
		l.judgeOwn(w, r, m, before, after)
		return
	}
	key, name := l.Population.Key(after), stampPrefix+id
	was, is := before.Lookup(name).Text(), after.Lookup(name).Text()
	if is == was || is == "" {
		return
	}
	old, _ := oracle.ReadStamp(was)
	written, _ := oracle.ReadStamp(is)
	same := old.Context == written.Context
	if same && written.Version < old.Version {
		l.problem("%s takes a step back: %s of %s from %q to %q", w, r.Name, key, was, is)
	}
	if r.HasParent() && same && written.Version == old.Version {
		l.problem("%s writes two states under one version: %s of %s from %q to %q", w, r.Name, key, was, is)
	}
	group, asked := askedOf(r, m, after)
	if !r.HasParent() && same && written.Version == old.Version && !l.drifts(r, before, before) && l.drifts(r, before, after) &&
		!l.isOutgrown(r, id, group, written) {
		l.problem("%s undoes what was right, under an equal version: %s of %s from %q to %q", w, r.Name, key, was, is)
	}
	within := group
	if r.Derives() {
		within = "" // the item's key says it
	}
	if asked && written.Context != l.contextOf(key, within) {
		l.problem("%s writes %s on %s, which does not ask for it: %s", w, r.Name, key, told(after))
	}
	if r.Folds() {
		l.judgeGeneration(w, r, id, key, written)
	}
	shown := after.Lookup(r.Writes[0])
	if !r.HasParent() && !shown.Equal(before.Lookup(r.Writes[0])) && shown.Kind() != change.KindAbsent && !l.isLive(id) {
		l.problem("%s shows %s on %s before it is seeded", w, r.Name, key)
	}
}

// generationShift is how many bits of a count are of operations; the generation stands above them.
const generationShift = 44

// judgeGeneration says whether a worker shows a generation that is not counted yet (promise 10).
func (l *life) judgeGeneration(w *adversary.Worker, r *rules.Rule, id string, key change.Key, written oracle.Stamp) {
	counted, _ := strconv.ParseInt(l.registryRow("rule/"+id).Lookup("counted").Text(), 10, 64)
	if generation := written.Count() >> generationShift; generation > counted {
		l.problem("%s shows generation %d of %s on %s before it is counted", w, generation, r.Name, key)
	}
}

// isOutgrown reports whether a display of some items of a group was written by a count of operations that is not the last one: a worker
// that read the items before an operation may follow one that read them behind it. The worker of that operation writes the display again.
func (l *life) isOutgrown(r *rules.Rule, id, group string, written oracle.Stamp) bool {
	if _, adds := r.Form.(rules.Adder); adds {
		return false
	}
	rows, err := items(l.crew.Sim, stateTableName)
	if err != nil {
		return false
	}
	name, operations, found := strings.NewReplacer("%", "%25", "/", "%2F").Replace(group), int64(0), false
	for _, row := range rows {
		pk := row["pk"].Text()
		if strings.HasPrefix(pk, "sum/"+id+"/"+name+"/") || r.ByUnique && strings.HasPrefix(pk, "locator/") && strings.HasSuffix(pk, "/"+name) {
			ops, _ := strconv.ParseInt(row["ops"].Text()+row["changes"].Text(), 10, 64)
			operations, found = operations+ops, found || row["ops"].Kind() != change.KindAbsent
		}
	}
	return !found || operations > written.Count() // the key of a long group is cut
}

// judgeOwn says whether a worker took off an item what it must hold by itself, or wrote what it must not (promise 3).
func (l *life) judgeOwn(w *adversary.Worker, r *rules.Rule, m *rules.Match, before, after change.Item) {
	key := l.Population.Key(after)
	wrote := slices.ContainsFunc(r.Writes, func(name string) bool { return !before.Lookup(name).Equal(after.Lookup(name)) })
	if !wrote {
		return // it is another rule's write
	}
	was, ok := l.Population.Set.Identify(key, before)
	right := ok && was.Entity == r.Target && oracle.HoldsOwn(r, &was, before)
	if r.Target.Derived && oracle.Made(key, after) && !oracle.Made(key, before) {
		return // a derived item took the place of another program's: what others write on it comes with its record
	}
	if right && w.RuleFile() == l.Population.File && !oracle.HoldsOwn(r, m, after) {
		l.problem("%s undoes what was right: %s of %s from %s to %s", w, r.Name, key, told(before), told(after))
	}
}

// drifts reports whether a display would be wrong if an item, that was as
// before, were as given, with the rest of the table as it is.
func (l *life) drifts(r *rules.Rule, before, given change.Item) bool {
	present, err := l.app.present()
	if err != nil {
		return false
	}
	key := l.Population.Key(before)
	for i, it := range present {
		if l.Population.Key(it) == key {
			present[i] = given
		}
	}
	return slices.ContainsFunc(oracle.Drift(l.Population.Set, l.named(present), l.expired()),
		func(d oracle.Difference) bool { return d.Rule == r.Name && d.Key == key })
}

// askedOf is the parent or the group of an item under a rule.
func askedOf(r *rules.Rule, m *rules.Match, it change.Item) (string, bool) {
	if r.HasParent() {
		parent, ok, err := oracle.ParentOf(r, m, it)
		return parent.String(), ok && err == nil
	}
	group, ok, err := r.GroupOf(m, it)
	return group, ok && err == nil
}

// contextOf is the context of a stamp on an item.
func (l *life) contextOf(key change.Key, within string) string {
	incarnation := l.registryRow("table").Lookup("incarnation")
	return oracle.ShortDigest(8, incarnation, change.String(key.String()), change.String(within))
}

func (l *life) isLive(id string) bool {
	return l.registryRow("rule/"+id).Lookup("state").Text() == "live"
}

// registryRow reads one item of the registry.
func (l *life) registryRow(sk string) change.Item {
	out, err := l.crew.Sim.GetItem(context.Background(), &dynamodb.GetItemInput{
		TableName: aws.String(stateTableName), ConsistentRead: aws.Bool(true),
		Key: map[string]ddb.AttributeValue{"pk": &ddb.AttributeValueMemberS{Value: "registry"}, "sk": &ddb.AttributeValueMemberS{Value: sk}},
	})
	if err != nil {
		return nil
	}
	return attributes.ItemFromTable(out.Item)
}

// opponent is another program that keeps overwriting a derived attribute.
type opponent struct {
	attribute string
	value     change.Value
	answers   int
}

// answersMax is how often an opponent has to answer before the fight counts as
// endless: more than all the bounds in a history's time together. In one that ages,
// each ten minutes have a bound of their own.
const answersMax = 300

func (l *life) answersMax() int {
	if !l.aged {
		return answersMax
	}
	return answersMax + 2*l.HealsMax*int(retention/(10*time.Minute))
}

// answer lets the opponent, if the item has one, overwrite what was written.
func (l *life) answer(after change.Item) {
	o, ok := l.opponents[l.Population.Key(after)]
	if !ok || after.Lookup(o.attribute).Equal(o.value) {
		return
	}
	if o.answers++; o.answers > l.answersMax() {
		l.problem("the fight for %s of %s has no end", o.attribute, l.Population.Key(after))
		return
	}
	l.opponents[l.Population.Key(after)] = o
	it := l.app.keyItem(after)
	it[o.attribute] = o.value
	if err := l.app.set(it); err != nil {
		l.problem("%v", err)
	}
}

// fight has the application overwrite a derived attribute: whenever it is
// written, where the engine's bound is low enough to see the end of it, else once.
func (l *life) fight(s Step) error {
	present, err := l.app.present()
	if err != nil || len(present) == 0 {
		return err
	}
	it := present[s.Pick%uint64(len(present))]
	m, ok := l.Population.Set.Identify(l.Population.Key(it), it)
	if !ok {
		return nil
	}
	for _, r := range l.Population.Set.Rules {
		if r.Target != m.Entity || len(r.Writes) == 0 {
			continue
		}
		wrong := l.app.keyItem(it)
		wrong[r.Writes[0]] = change.Number("4711")
		if l.HealsMax > 0 {
			l.opponents[l.Population.Key(it)] = opponent{attribute: r.Writes[0], value: wrong[r.Writes[0]]}
		}
		return l.app.set(wrong)
	}
	return nil
}
