package projections

import (
	"reflect"
	"slices"

	"github.com/dynamill/dynamill/projections/internal/kinds"
)

// Kinds are the kinds of rules that the engine derives. rules.Load is given them.
var Kinds = kinds.All

// having are the families of kinds that have a role. The kinds of one family are of one type: the first
// of them acts for the family.
func having[Role any]() []Role {
	var roles []Role
	var seen []reflect.Type
	for _, k := range Kinds {
		role, has := k.(Role)
		if family := reflect.TypeOf(k); has && !slices.Contains(seen, family) {
			seen, roles = append(seen, family), append(roles, role)
		}
	}
	return roles
}
