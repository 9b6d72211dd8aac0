package oracle

import (
	"slices"
	"strconv"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/proof/oracle/internal/keys"
	"github.com/dynamill/dynamill/internal/rules"
)

// joins holds the rules' reading of keys and joins to one of the oracle's own: it returns a difference for every item of the
// table that the two take for items of different entities, or join to different items.
func (t *table) joins() []Difference {
	j := t.joiner()
	var found []Difference
	differ := func(rule string, key change.Key, what, want, got string) {
		if want != got {
			found = append(found, Difference{Rule: rule, Key: key, Attribute: what, Want: change.String(want), Got: change.String(got)})
		}
	}
	for key, item := range t.actual {
		entity, values := j.identify(key, item)
		m, ok := t.set.Identify(key, item)
		if entity != m.Entity || (entity != nil) != ok {
			differ("", key, "(entity)", nameOf(entity), nameOf(m.Entity))
			continue
		}
		if !ok {
			continue
		}
		for name, value := range values {
			want := change.String(value)
			if j.shapes[entity].IsPadded(name) {
				want = change.Number(value)
			}
			if item[name].Kind() != change.KindAbsent {
				want = item[name]
			}
			if got := entity.Value(name, &m, item); !got.Equal(want) {
				found = append(found, Difference{Key: key, Attribute: "(" + name + ")", Want: want, Got: got})
			}
		}
		if entity.Unique != "" {
			value, ok, err := entity.UniqueValue(&m, item)
			differ("", key, "(unique)", j.unique(entity, j.value(entity, values, item, entity.Unique)).String(), answerOf(value, ok, err).String())
		}
		for _, rule := range t.rules {
			if rule.WritesSource() {
				continue
			}
			theirs, ours := sides(rule)
			if ours != entity {
				continue
			}
			takes, _ := takenBy(rule, &m, item)
			for _, t := range takes {
				want := j.refers(rule, theirs, ours, values, t.within(item, rule))
				differ(rule.Name, key, "(join)", want.String(), joined(rule, t.Match, item).String())
				if apart(rule) {
					want := j.per(ours, values, t.within(item, rule), rule.Per)
					differ(rule.Name, key, "(per)", want.String(), answerOf(rule.PerText(t.Match, item)).String())
				}
			}
		}
	}
	return found
}

func nameOf(e *rules.Entity) string {
	if e == nil {
		return ""
	}
	return e.Name
}

// joined is what the rules say that an item is joined with.
func joined(rule *rules.Rule, m *rules.Match, item change.Item) answer {
	if rule.HasParent() {
		key, ok, err := rule.JoinedKey(m, item)
		if rule.ByUnique { // the value stands for the key
			return answerOf(key.Partition, ok, err)
		}
		return answerOf(key.String(), ok, err)
	}
	return answerOf(rule.JoinedText(m, item))
}

// sides are the entity that a rule looks for, and the one whose items say which of its items it is.
func sides(rule *rules.Rule) (theirs, ours *rules.Entity) {
	if rule.HasParent() {
		return rule.Source, rule.Target
	}
	return rule.Target, rule.Source
}

// soughtBy is the entity that a rule looks for.
func soughtBy(rule *rules.Rule) *rules.Entity {
	theirs, _ := sides(rule)
	return theirs
}

// answer is a text, nothing, or the code for which an item is parked.
type answer struct {
	text, bad string
	given     bool
}

func (a answer) String() string {
	switch {
	case a.bad != "":
		return "!" + a.bad
	case a.given:
		return "=" + a.text
	}
	return ""
}

func answerOf(text string, ok bool, err error) answer {
	if err != nil {
		return answer{bad: code(err)}
	}
	return answer{text: text, given: ok}
}

// joiner reads keys and joins as the rule file says them.
type joiner struct {
	set    *rules.Set
	shapes map[*rules.Entity]*keys.Shape
}

// joiner reads the entities of the table's rules.
func (t *table) joiner() joiner {
	j := joiner{t.set, map[*rules.Entity]*keys.Shape{}}
	for _, e := range t.set.Entities {
		partition, sort := e.Templates()
		j.shapes[e] = keys.NewShape(partition, sort, t.set.Table.Case.String(), t.keys)
	}
	return j
}

func (j joiner) identify(key change.Key, item change.Item) (*rules.Entity, map[string]string) {
	for _, e := range j.set.Entities {
		values, ok := j.shapes[e].Read(key)
		for _, eq := range e.Equals {
			ok = ok && item[eq.Attribute].Equal(eq.Value)
		}
		if ok {
			return e, values
		}
	}
	return nil, nil
}

// refers says which item an item of ours is joined with: by its key, or by its unique value.
func (j joiner) refers(rule *rules.Rule, theirs, ours *rules.Entity, values map[string]string, item change.Item) answer {
	wanted, known := j.shapes[theirs].Names, slices.Clone(j.shapes[ours].Names)
	if rule.Each.As != "" {
		known = append(known, rule.Each.As)
	}
	open := slices.DeleteFunc(slices.Clone(wanted), func(name string) bool { return slices.Contains(known, name) })
	from, unique := map[string]rules.Joined{}, rules.Joined{} // by their variable; what of ours holds their unique value
	for _, by := range rule.By {
		name := by.Theirs
		switch {
		case by.Bare && len(rule.By) == 1 && name == theirs.Unique && !rule.AlongItself() && !rule.MakesItems() &&
			!slices.Equal(wanted, []string{name}):
			return j.unique(theirs, j.said(ours, values, item, by))
		case by.Bare && len(rule.By) == 1 && name != theirs.Unique && !slices.Contains(wanted, name) && len(open) == 1:
			name = open[0]
		}
		from[name] = by
		if name == theirs.Unique && len(rule.By) == 1 {
			unique = by
		}
	}
	if unique.Ours != "" && slices.ContainsFunc(open, func(name string) bool { return from[name].Ours == "" }) {
		return j.unique(theirs, j.said(ours, values, item, unique))
	}
	filled := map[string]string{}
	for _, name := range wanted {
		by, ok := from[name]
		if !ok {
			by.Ours = name
		}
		a := j.said(ours, values, item, by)
		if !a.given {
			return a
		}
		filled[name] = a.text
	}
	key, bad := j.shapes[theirs].Write(filled)
	return answer{text: key.String(), bad: bad, given: true}
}

// unique is a value that an item of an entity is known by, as its key holds it.
func (j joiner) unique(e *rules.Entity, a answer) answer {
	if shape := j.shapes[e]; a.given && slices.Contains(shape.Names, e.Unique) {
		a.text, a.bad = shape.Form(e.Unique, a.text)
	}
	if len(a.text) > partitionMax {
		return answer{bad: "key.too_long"}
	}
	return a
}

// said is the text of what a rule file names, or of an expression.
func (j joiner) said(e *rules.Entity, values map[string]string, item change.Item, by rules.Joined) answer {
	if !by.Expression {
		return j.value(e, values, item, by.Ours)
	}
	w := &worker{get: func(name string) change.Value {
		if v := item[name]; v.Kind() != change.KindAbsent {
			return v
		}
		switch text, ok := values[name]; {
		case !ok:
			return change.Value{}
		case j.shapes[e].IsPadded(name):
			return change.Number(text)
		default:
			return change.String(text)
		}
	}}
	v := w.whole(by.Ours)
	if w.bad != "" {
		return answer{bad: w.bad}
	}
	return textOf(v)
}

// value is the text of a key variable, or else of an attribute. Of a key that holds its texts in one case, the attribute of that
// name tells the letters, if it is what the key holds.
func (j joiner) value(e *rules.Entity, values map[string]string, item change.Item, name string) answer {
	if text, ok := values[name]; ok {
		attribute := item[name]
		form, _ := j.shapes[e].Form(name, attribute.Text())
		if j.shapes[e].Case(name) != "" && attribute.Kind() == change.KindString && form == text {
			text = attribute.Text()
		}
		return answer{text: text, given: true}
	}
	return textOf(item[name])
}

// textOf is a value as a part of a key.
func textOf(v change.Value) answer {
	switch v.Kind() {
	case change.KindAbsent, change.KindNull:
		return answer{}
	case change.KindString:
		return answer{text: v.Text(), given: v.Text() != ""}
	case change.KindBool:
		return answer{text: strconv.FormatBool(v.Bool()), given: true}
	case change.KindNumber:
		if number, err := decimal.Parse(v.Text()); err == nil {
			return answer{text: number.String(), given: true}
		}
	}
	return answer{bad: "value.type"}
}
