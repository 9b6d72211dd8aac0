package projections

import (
	"context"

	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// ParkedInspection reads what a state table says is parked. It needs no rules
// and writes nothing.
type ParkedInspection struct {
	*ruleReader
	Table string // the user's, that the state table belongs to
}

// InspectParked begins to read what is parked. As Inspect, it returns a
// *SetupError where nothing has run yet.
func InspectParked(ctx context.Context, client table.InspectClient, stateTable string) (*ParkedInspection, error) {
	rd, found, err := beginInspection(ctx, client, stateTable)
	if err != nil {
		return nil, err
	}
	return &ParkedInspection{rd, found.Table}, nil
}
