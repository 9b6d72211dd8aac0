package projections

import "github.com/dynamill/dynamill/internal/projections/internal/kinds"

// Kinds are the kinds of rules that the engine derives. rules.Load is given them.
var Kinds = kinds.All
