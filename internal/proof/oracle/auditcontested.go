package oracle

import (
	"strings"

	"github.com/dynamill/dynamill/change"
)

// contested is what several items claim: a mirror item, or a unique value.
type contested struct {
	id   string // of the rule, or "@" and what names the locators
	text string // the mirror item's key, or the unique value
}

// row is the parked row that lists it.
func (c contested) row() (change.Key, wanted) {
	row := change.Item{"rule": change.String(c.id), "item": {}, "value": {}}
	name := "contested:" + c.id + "/" + c.text
	if strings.HasPrefix(c.id, "@") {
		name = "contested:" + c.id + "/" + inner(c.text)
		row["code"], row["value"] = change.String("unique.contested"), change.String(c.text)
	} else {
		row["code"], row["item"] = change.String("item.contested"), change.String(c.text)
	}
	row["id"] = change.String(name)
	return stateKey("parked", name), wanted{c.id, row}
}

// contestedRows are the rows of all that two or more items claim.
func (a *audit) contestedRows() map[change.Key]wanted {
	claimants := map[contested]int{}
	for _, effects := range a.effects {
		for name, text := range effects {
			id := ruleOf(name)
			if rule := a.ids[id]; text[0] == '=' && rule != nil && !rule.Injective {
				claimants[contested{id, mirrorIn(text)}]++
			} else if text[0] == '@' {
				claimants[contested{id, text[1:]}]++
			}
		}
	}
	rows := map[change.Key]wanted{}
	for c, n := range claimants {
		if n > 1 {
			key, row := c.row()
			rows[key] = row
		}
	}
	return rows
}
