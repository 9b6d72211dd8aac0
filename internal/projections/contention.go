package projections

import (
	"context"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// claimantSetsMax is how many sets of claimants are read at once: one may have 400 KB.
const claimantSetsMax = 100

// readClaimants reads the items that claim the contested targets among parked records.
func (rd *ruleReader) readClaimants(ctx context.Context, page []Parked) error {
	for part := range slices.Chunk(page, claimantSetsMax) {
		var keys []table.Key
		for _, p := range part {
			if p.contested != nil {
				keys = append(keys, state.SetKey(*p.contested))
			}
		}
		rows, err := rd.reader.ReadState(ctx, "reading the claimants of contested targets", keys)
		if err != nil {
			return err
		}
		for i := range part {
			part[i].addClaimants(rows)
		}
	}
	return nil
}

// addClaimants adds to a contested target the items that claim it, of the rows that were read.
func (p *Parked) addClaimants(rows map[table.Key]table.Row) {
	t := p.contested
	if t == nil {
		return
	}
	set := state.ReadSet(rows[state.SetKey(*t)], t.Value != "")
	for _, text := range set.Sources {
		p.Claimants = append(p.Claimants, change.ParseKey(text))
	}
	if t.Value != "" && len(p.Claimants) > 0 {
		p.Key = p.Claimants[0] // to rederive it updates the list
	}
	p.Reason = host.ContentionReason(*t, set.Sources)
}
