package effects

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
)

// A ledger entry holds its effects as a set of texts, because a map takes more bytes. The key of an effect stands before it: a rule's id
// alone; behind a locator's id stands a blank. What the effect is for stands between blanks, where none is part of it. Effects under one
// rule that differ in that alone, such as those of an item's tags, share one text: what each is for is listed, and a mark stands for it.

var (
	escapePurpose   = strings.NewReplacer("%", "%25", " ", "%20", ",", "%2C")
	unescapePurpose = strings.NewReplacer("%25", "%", "%20", " ", "%2C", ",")
)

const (
	purposeComma = ","
	purposeMark  = "${}" // stands in the text of effects for what each is for
	asItIs       = " "   // begins the text of an effect that holds the mark by itself
)

// Texts are the effects as a ledger entry holds them, sorted.
func (fs ByKey) Texts() []string {
	texts := make([]string, 0, len(fs))
	var listed map[Key][]string // by id and common text
	for k, f := range fs {
		if text := f.String(); k.For == "" {
			texts = append(texts, k.before(text))
		} else {
			if listed == nil {
				listed = map[Key][]string{}
			}
			common := Key{k.ID, k.common(text)}
			listed[common] = append(listed[common], escapePurpose.Replace(k.For))
		}
	}
	for common, purposes := range listed {
		texts = append(texts, listText(common.ID, purposes, common.For))
	}
	slices.Sort(texts)
	return texts
}

// listText is the text of effects with something in common.
func listText(id string, purposes []string, common string) string {
	slices.Sort(purposes)
	return id + " " + strings.Join(purposes, purposeComma) + " " + common
}

// before puts the key of an effect that is for nothing else before its text.
func (k Key) before(effect string) string {
	if _, locator := LocatorIn(k.ID); locator {
		return k.ID + " " + effect
	}
	return k.ID + effect
}

// common is the text of an effect with the mark in the place of what the effect is for.
func (k Key) common(effect string) string {
	at := strings.LastIndex(effect, k.For)
	common := effect
	if at >= 0 {
		common = effect[:at] + purposeMark + effect[at+len(k.For):]
	}
	if strings.Contains(effect, purposeMark) || strings.Count(common, purposeMark) > 1 {
		return asItIs + effect
	}
	return common
}

// particular is the text of an effect of which common gave what it has in common with others.
func (k Key) particular(common string) string {
	if effect, whole := strings.CutPrefix(common, asItIs); whole {
		return effect
	}
	return strings.Replace(common, purposeMark, k.For, 1)
}

// cutEffects reads one text of Texts. It returns false for one that Texts never gives.
func cutEffects(text string) (map[Key]string, bool) {
	var k Key
	if _, locator := LocatorIn(text); locator {
		id, effect, _ := strings.Cut(text, " ")
		k.ID = id
		return map[Key]string{k: effect}, k.before(effect) == text
	}
	id, effect := stamp.CutDigits(text)
	k.ID = id
	list, listed := strings.CutPrefix(effect, " ")
	if !listed {
		return map[Key]string{k: effect}, id != ""
	}
	list, common, _ := strings.Cut(list, " ")
	all := map[Key]string{}
	purposes := strings.Split(list, purposeComma)
	for _, purpose := range purposes {
		k.For = unescapePurpose.Replace(purpose)
		if all[k] = k.particular(common); k.For == "" || escapePurpose.Replace(k.For) != purpose || k.common(all[k]) != common {
			return nil, false
		}
	}
	return all, id != "" && len(all) == len(purposes) && listText(id, purposes, common) == text
}

// ReadTexts are the texts of a ledger entry's effects by their keys. The error says what another program has written there; the texts
// are then those that can be read. An entry without effects expires: one that does not has lost them.
func ReadTexts(row change.Item) (map[Key]string, error) {
	switch v := row["e"]; {
	case v.Kind() == change.KindAbsent && row["ttl"].Kind() != change.KindAbsent:
		return nil, nil
	case v.Kind() != change.KindStringSet:
		return nil, errors.New("no effects")
	}
	var err error
	all := map[Key]string{}
	for _, v := range row["e"].List() {
		cut, ok := cutEffects(v.Text())
		for k := range cut {
			_, twice := all[k]
			ok = ok && !twice
		}
		if !ok {
			err = fmt.Errorf("the effect %q, which has no key of its own", v.Text())
			continue
		}
		maps.Copy(all, cut)
	}
	return all, err
}
