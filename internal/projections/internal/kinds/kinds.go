// Package kinds is the list of the kinds of rules. Each family of kinds has a
// folder below this one. A new kind is a new folder, or a part of one, and a line here.
package kinds

import (
	"github.com/dynamill/dynamill/internal/projections/internal/kinds/aggregates"
	"github.com/dynamill/dynamill/internal/projections/internal/kinds/computed"
	"github.com/dynamill/dynamill/internal/projections/internal/kinds/copies"
	"github.com/dynamill/dynamill/internal/projections/internal/kinds/deletions"
	"github.com/dynamill/dynamill/internal/projections/internal/kinds/hot"
	"github.com/dynamill/dynamill/internal/projections/internal/kinds/mirrors"
	"github.com/dynamill/dynamill/internal/projections/internal/kinds/ordered"
	"github.com/dynamill/dynamill/internal/projections/internal/kinds/trees"
	"github.com/dynamill/dynamill/internal/rules"
)

// All are the kinds of rules, in the order in which problems of a rule file list
// them, and those that later versions know. The engine applies the families in the opposite
// order: items are made before copies are written on them.
var All = []rules.Kind{
	copies.Copy,
	mirrors.Mirror,
	aggregates.Count,
	aggregates.Sum,
	aggregates.Average,
	hot.Count,
	hot.Sum,
	hot.Average,
	ordered.Min,
	ordered.Max,
	ordered.First,
	ordered.Last,
	computed.Set,
	trees.Tree,
	rules.Planned("derive"),
	deletions.Delete,
}
