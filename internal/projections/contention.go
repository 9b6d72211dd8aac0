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
		if err := rd.readClaimantsOf(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

func (rd *ruleReader) readClaimantsOf(ctx context.Context, page []Parked) error {
	var keys []table.Key
	for i := range page {
		if t := page[i].contested; t != nil {
			keys = append(keys, state.SetKey(*t))
		}
	}
	rows, err := rd.reader.ReadState(ctx, "reading the claimants of contested targets", keys)
	if err != nil {
		return err
	}
	for i := range page {
		t := page[i].contested
		if t == nil {
			continue
		}
		set := state.ReadSet(rows[state.SetKey(*t)], t.Value != "")
		for _, text := range set.Sources {
			page[i].Claimants = append(page[i].Claimants, change.ParseKey(text))
		}
		if t.Value != "" && len(page[i].Claimants) > 0 {
			page[i].Key = page[i].Claimants[0] // to rederive it updates the list
		}
		page[i].Reason = host.ContentionReason(*t, set.Sources)
	}
	return nil
}
