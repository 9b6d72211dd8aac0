package infra

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/internal/rules"
)

// permissions are the statements of each role; templates/permissions.yaml has them.
type permissions struct{ Function, Replay, Machine []statement }

// statement allows some actions on some resources, which may have placeholders.
type statement struct {
	ID        string
	Why       string
	Actions   []string
	Resources []string
}

// permissionsOf are just what these rules need: what the engine calls for them, and what Lambda does
// in the function's name.
func permissionsOf(set *rules.Set, o Options) permissions {
	all := set.Rules
	if o.Former != nil {
		all = slices.Concat(all, o.Former.Rules)
	}
	needs := needsOf(all)
	var actions []string
	for _, need := range needs {
		actions = append(actions, need.Action)
	}
	return decoded[permissions](render(permissionsFile, struct {
		Options
		Needs       []rules.Need
		Actions     []string // of these, each once
		PiecesLabel string
	}{o, needs, slices.Compact(actions), piecesLabel}))
}

// needsOf are what rules call on the user's table beside what all rules call, each action once.
func needsOf(all []*rules.Rule) []rules.Need {
	found := map[rules.Need]bool{}
	for _, r := range all {
		for _, need := range r.Form.Needs() {
			found[need] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b rules.Need) int {
		return cmp.Or(cmp.Compare(a.Action, b.Action), cmp.Compare(a.Why, b.Why))
	})
}

// ExportsFolder is the bucket and the beginning of the keys of all exports that replays may read.
func (o Options) ExportsFolder() string {
	return strings.TrimSuffix(after(objectPrefix, o.ReplayExports), "/") + "/"
}

// ExportsBucket is the bucket of these exports.
func (o Options) ExportsBucket() string {
	bucket, _, _ := strings.Cut(o.ExportsFolder(), "/")
	return bucket
}
