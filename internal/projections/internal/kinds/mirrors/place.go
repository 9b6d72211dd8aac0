package mirrors

import (
	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
)

// place is the state of the key at which a mirror item belongs.
type place uint8

const (
	placeFree     place = iota + 1 // no item stands there
	placeMade                      // the engine made the item there
	placeTheirs                    // the application made the item; it is of the target's entity: the rule adopts it
	placeOccupied                  // the application made the item; it is of another entity
)

// placeOf tells the place at a target's key from the item there; nil: none.
func placeOf(b *plan.Binding, target change.Key, img change.Image) place {
	switch {
	case img == nil:
		return placeFree
	case plan.IsMade(target, img):
		return placeMade
	case b.Rule.Target.Is(img):
		return placeTheirs
	}
	return placeOccupied
}

// placeAt is the place at a target as a move saw it, or else as it is expected to be.
func placeAt(mv *plan.Move, b *plan.Binding, target change.Key, expected place) place {
	if img, seen := mv.Seen[target]; seen {
		return placeOf(b, target, img)
	}
	return expected
}

// occupies reports whether an item of another entity stands at a target's key.
func occupies(b *plan.Binding, target change.Key, img change.Image) bool {
	return img != nil && len(b.Rule.Target.Equals) > 0 && placeOf(b, target, img) == placeOccupied
}

// occupiedCode is the code under which (rule, target) is parked while an item of another entity stands there.
const occupiedCode = "mirror.occupied"
