package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
)

// A ledger entry holds its effects as a set of texts, because a map takes more bytes. The key of an effect stands before it: a rule's id
// alone; behind a locator's id stands a blank. What the effect is for stands between blanks, where none is part of it.

var (
	escapeBlanks   = strings.NewReplacer("%", "%25", " ", "%20")
	unescapeBlanks = strings.NewReplacer("%25", "%", "%20", " ")
)

// Texts are the effects as a ledger entry holds them, sorted.
func (fs Effects) Texts() []string {
	texts := make([]string, 0, len(fs))
	for k, f := range fs {
		texts = append(texts, k.before(f.String()))
	}
	slices.Sort(texts)
	return texts
}

// before puts the key before the text of its effect.
func (k EffectKey) before(effect string) string {
	switch _, locator := LocatorIn(k.ID); {
	case k.For != "":
		return k.ID + " " + escapeBlanks.Replace(k.For) + " " + effect
	case locator:
		return k.ID + " " + effect
	}
	return k.ID + effect
}

// cutEffect reads what before wrote.
func cutEffect(text string) (k EffectKey, effect string) {
	if _, locator := LocatorIn(text); locator {
		k.ID, effect, _ = strings.Cut(text, " ")
		return k, effect
	}
	k.ID, effect = stamp.CutDigits(text)
	if what, found := strings.CutPrefix(effect, " "); found {
		what, effect, _ = strings.Cut(what, " ")
		k.For = unescapeBlanks.Replace(what)
	}
	return k, effect
}

// EffectTexts are the texts of a ledger entry's effects by their keys. The error says what another program has written there; the texts
// are then those that can be read. An entry without effects expires: one that does not has lost them.
func EffectTexts(row change.Item) (map[EffectKey]string, error) {
	switch v := row["e"]; {
	case v.Kind() == change.KindAbsent && row["ttl"].Kind() != change.KindAbsent:
		return nil, nil
	case v.Kind() != change.KindStringSet:
		return nil, errors.New("no effects")
	}
	var err error
	all := map[EffectKey]string{}
	for _, v := range row["e"].List() {
		k, effect := cutEffect(v.Text())
		if _, twice := all[k]; twice || k.ID == "" || k.before(effect) != v.Text() {
			err = fmt.Errorf("the effect %q, which has no key of its own", v.Text())
			continue
		}
		all[k] = effect
	}
	return all, err
}
