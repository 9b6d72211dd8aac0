package projections

import "context"

// InspectParked lists what a state table says is parked, sorted by id, and names the
// user's table that it belongs to. It needs no rules and writes nothing. As Inspect,
// it returns a *SetupError where nothing has run yet.
func InspectParked(ctx context.Context, client InspectClient, stateTable string) (table string, parked []Parked, err error) {
	e, found, err := beginInspection(ctx, client, stateTable)
	if err != nil {
		return "", nil, err
	}
	parked, err = e.Parked(ctx)
	return found.Table, parked, err
}
