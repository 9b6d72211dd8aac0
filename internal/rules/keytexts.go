package rules

import "github.com/dynamill/dynamill/internal/rules/internal/templates"

// KeyText is the entity's key templates, as the file has them, with " / " between.
func (e *Entity) KeyText() string { return e.shape.Text() }

// KeyText says what is fixed about the text of one key attribute of an
// entity's items, whatever values the variables have.
type KeyText struct {
	Exact  bool   // the text is always Prefix
	Prefix string // what every such text begins with; "" if it may begin with anything
	Suffix string // what every such text ends with; "" if it may end with anything
}

// KeyTexts says what is fixed about the keys of the entity's items: enough to
// tell most records that concern no rule by their keys alone, and never to miss
// one. sort is nothing for a table without a sort key. A text that is fixed in
// no way, such as "${x}", may also be a number.
func (e *Entity) KeyTexts() (partition, sort KeyText) {
	if e.shape.HasSort {
		sort = keyText(&e.shape.Sort)
	}
	return keyText(&e.shape.Partition), sort
}

func keyText(t *templates.Template) KeyText {
	prefix, suffix, exact := t.Fixed()
	return KeyText{Exact: exact, Prefix: prefix, Suffix: suffix}
}
