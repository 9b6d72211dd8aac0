package projections

import (
	"context"

	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// ParkedInspection reads what a state table says is parked. It needs no rules
// and writes nothing.
type ParkedInspection struct {
	Table  string // the user's, that the state table belongs to
	reader *ruleReader
}

// InspectParked begins to read what is parked. As Inspect, it returns a
// *SetupError where nothing has run yet.
func InspectParked(ctx context.Context, client table.InspectClient, stateTable string) (*ParkedInspection, error) {
	rd, found, err := beginInspection(ctx, client, stateTable)
	if err != nil {
		return nil, err
	}
	return &ParkedInspection{found.Table, rd}, nil
}

// Each is Engine.EachParked.
func (p *ParkedInspection) Each(ctx context.Context, f func(page []Parked) error) error {
	return p.reader.eachParked(ctx, f)
}

// Find is Engine.FindParked.
func (p *ParkedInspection) Find(ctx context.Context, id string) (Parked, error) {
	return p.reader.findParked(ctx, id)
}
