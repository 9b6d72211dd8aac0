package projections

import (
	"context"

	"github.com/dynamill/dynamill/internal/projections/internal/registry"
)

// AnyEpoch agrees to a change of whatever rules are in force.
const AnyEpoch = registry.AnyEpoch

// Open describes the table, creates the state table if it is missing, and registers
// new rules. It returns a *SetupError if the surroundings are not as they must be, a
// *RulesChangedError if the file changes or removes rules in force, and a
// *rules.Problems if templates do not suit the table's keys.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	return open(ctx, cfg, registry.Options{})
}

// OpenChanging is Open, and carries out what the file changes or removes of the rules
// in force: they retire, and seeding takes back what they wrote. The caller agreed to
// the Comparison of agreedEpoch. If other rules are in force by now, it returns a
// *RulesChangedError. Epoch 0 agrees to no change.
func OpenChanging(ctx context.Context, cfg Config, agreedEpoch int) (*Engine, error) {
	return open(ctx, cfg, registry.Options{AgreedEpoch: agreedEpoch})
}

// OpenAttached creates and registers nothing: if there is no state table, or it does not
// know all the rules, it returns a *SetupError or a *RulesChangedError.
func OpenAttached(ctx context.Context, cfg Config) (*Engine, error) {
	return open(ctx, cfg, registry.Options{Attach: true})
}
