// Package rulediff says in what two rules differ, in the words of the rule file. It reads what a compiled rule shows of itself,
// and asks the rule's Form for what only its kind knows.
package rulediff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// FieldChange is one thing that two rules say differently, in the words of the rule file.
type FieldChange struct {
	Field string `json:"field"`         // "where", "by", "key of User"
	Old   string `json:"old,omitempty"` // "" if the rule does not say it
	New   string `json:"new,omitempty"`
}

// Compare says in what two rules differ, of all that they mean. It returns nothing
// for rules of one fingerprint.
func Compare(old, new *rules.Rule) []FieldChange {
	var found []FieldChange
	add := func(field, before, after string) {
		if before != after {
			found = append(found, FieldChange{field, before, after})
		}
	}
	if old.Fingerprint == new.Fingerprint {
		return nil
	}
	add("kind", old.Kind.Word(), new.Kind.Word())
	traits, same := new.Kind.Traits(), old.Kind == new.Kind
	if same {
		add(traits.SourceField, old.Source.Name, new.Source.Name)
		if !traits.OneEntity() {
			add(traits.TargetField, targetText(old), targetText(new))
		}
	} else {
		add("reads", old.Source.Name, new.Source.Name)
		add("writes", targetText(old), targetText(new))
		add("value", expressionsText(old), expressionsText(new))
	}
	add("case of keys", old.Source.Table.Case.String(), new.Source.Table.Case.String())
	compareEntities(old.Source, new.Source, add)
	if old.Target.Name != old.Source.Name || new.Target.Name != new.Source.Name {
		compareEntities(old.Target, new.Target, add)
	}
	add("each", old.Each.String(), new.Each.String())
	add("by", joinText(old), joinText(new))
	add("per", perText(old), perText(new))
	add("order", templates.NameText(old.Order), templates.NameText(new.Order))
	add("where", old.WhereText(), new.WhereText())
	if same {
		for _, e := range traits.Expressions {
			add(e.Key, old.ExpressionText(e.Key), new.ExpressionText(e.Key))
		}
	}
	add(cmp.Or(traits.AttributesField, "attributes"), attributesText(old.Attributes, old.Shown), attributesText(new.Attributes, new.Shown))
	add("set", constantsText(old), constantsText(new))
	compareSaid(old.Form.Says(), new.Form.Says(), add)
	return found
}

// compareSaid compares what only the rules' kinds know, key by key.
func compareSaid(old, new []rules.Said, add func(field, before, after string)) {
	after := map[string]string{}
	for _, said := range new {
		after[said.Key] = said.Text
	}
	for _, said := range old {
		add(said.Key, said.Text, after[said.Key])
		delete(after, said.Key)
	}
	for _, said := range new {
		add(said.Key, "", after[said.Key])
	}
}

// expressionsText are the expressions under the words of the rule's kind.
func expressionsText(r *rules.Rule) string {
	var texts []string
	for _, e := range r.Kind.Traits().Expressions {
		if text := r.ExpressionText(e.Key); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, ", ")
}

func targetText(r *rules.Rule) string {
	if r.Displays() && r.Attributes[0].From == "" {
		return r.Target.Name + "." + templates.NameText(r.Writes[0])
	}
	return r.Target.Name
}

// compareEntities compares what tells items of two entities, where the rules name the same one.
func compareEntities(old, new *rules.Entity, add func(field, before, after string)) {
	if old.Name != new.Name {
		return
	}
	add("key of "+new.Name, old.TemplateText(), new.TemplateText())
	add("unique of "+new.Name, templates.NameText(old.Unique), templates.NameText(new.Unique))
	add("match of "+new.Name, equalsText(old), equalsText(new))
	add("derived of "+new.Name, derivedText(old), derivedText(new))
}

// derivedText says whether rules make an entity's items together, and how long those live.
func derivedText(e *rules.Entity) string {
	switch {
	case !e.Derived:
		return ""
	case e.Expire == 0:
		return "true"
	}
	return fmt.Sprintf("true, expire: %dd, expire_attribute: %s", int(e.Expire.Hours())/24, e.ExpireAttribute)
}

func equalsText(e *rules.Entity) string {
	constants := map[string]change.Value{}
	for _, eq := range e.Equals {
		constants[eq.Attribute] = eq.Value
	}
	return rules.ConstantsText(constants)
}

// joinText is what fills the other side's key, as under `by`.
func joinText(r *rules.Rule) string {
	names := r.Join.Theirs.Variables
	if r.ByUnique {
		names = []string{r.Pointed().Unique}
	}
	var parts []string
	for i, from := range r.Join.Refs() {
		part := templates.NameText(names[i])
		if from.Expression != nil {
			part += ": " + strings.TrimSpace(from.Expression.String())
		} else if text := from.Name(r.Join.Ours); text != names[i] {
			part += ": " + templates.NameText(text)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// perText is what the rule file says under `per`.
func perText(r *rules.Rule) string {
	if r.Per.Expression {
		return strings.TrimSpace(r.Per.Ours)
	}
	return templates.NameText(r.Per.Ours)
}

// attributesText are the attributes that a rule takes from items.
func attributesText(all ...[]rules.Attribute) string {
	var parts []string
	for _, a := range slices.Concat(all...) {
		switch a.From {
		case "":
		case a.As:
			parts = append(parts, templates.NameText(a.As))
		default:
			parts = append(parts, templates.NameText(a.From)+" as "+templates.NameText(a.As))
		}
	}
	return sortedText(parts)
}

func sortedText(parts []string) string {
	return strings.Join(slices.Sorted(slices.Values(parts)), ", ")
}

func constantsText(r *rules.Rule) string {
	constants := map[string]change.Value{}
	for _, a := range r.Attributes {
		if constants[a.As] = a.Constant; a.Template != nil {
			constants[a.As] = change.String(a.Template.String())
		}
	}
	return rules.ConstantsText(constants)
}
