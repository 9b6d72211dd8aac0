package rules

import (
	"fmt"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// Bounds of `per`: of a target of one rule, and of the text of a value.
const (
	PerValuesMax = 100 // a target with more shows none
	PerBytesMax  = 256
)

// HasPer reports whether the rule adds up apart what items with different values of something add.
func (r *Rule) HasPer() bool { return r.Per.Ours != "" }

// PerText is the text of the value of a source item by which a rule with `per` tells its sources apart; false if it is absent,
// null or empty. The error is an *ItemError.
func (r *Rule) PerText(m *Match, img change.Image) (string, bool, error) {
	text, ok, err := r.Source.text("per", r.per, m, img)
	if err != nil || !ok {
		return "", false, err
	}
	if len(text) > PerBytesMax {
		return "", false, &ItemError{Code: "per.too_long", Reason: fmt.Sprintf(
			"%s has %d bytes: the text of a value of `per` has at most %d", r.Source.refName(r.per), len(text), PerBytesMax)}
	}
	return text, true, nil
}

// perText is what the rule file says under `per`.
func (r *Rule) perText() string {
	if r.Per.Expression {
		return programText(r.per.Expression)
	}
	return templates.NameText(r.Per.Ours)
}
