package plan

import "github.com/dynamill/dynamill/change"

// Claim is a mirror item with claims, on which a move adds, keeps or drops the claim of its source.
type Claim struct {
	*Binding
	Target change.Key
	Effect Effect // what the source asks for; no kind: nothing any more
}

// Claims are the mirrors with claims that a move touches.
func (p *Planner) Claims(mv *Move) []Claim {
	var all []Claim
	for _, id := range mv.IDs() {
		b := p.ByID(id)
		if b == nil || !b.Claimed() || !mv.moves(id) {
			continue
		}
		old := mv.Old[id]
		new, _ := mv.next(id)
		if old.Kind == Mirrored && new.Kind == Mirrored && old.String() == new.String() && mv.Restore[id] != new.Target {
			continue
		}
		if old.Kind == Mirrored && (new.Kind != Mirrored || new.Target != old.Target) {
			all = append(all, Claim{Binding: b, Target: old.Target})
		}
		if new.Kind == Mirrored {
			all = append(all, Claim{b, new.Target, new})
		}
	}
	return all
}
