package mirrors

import (
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/auditing"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// made is the kind of drift of an item that a rule makes.
const made drift.Kind = "mirror item"

var procedures = map[drift.Kind]*auditing.Procedure{
	made: {
		Rows: auditing.Rows{claimRows}, Items: auditing.Items{itemAndSources}, Judge: judgeMirror, Parkings: parkings,
		Stage: drift.StageItems,
	},
	drift.Parked: {
		Rows: auditing.Rows{parkedRows}, Items: auditing.Items{itemAndSources}, Judge: judgeParked, Mend: auditing.ClearParked,
	},
}

// Procedure implements auditing.Family.
func (kind) Procedure(of drift.Kind) *auditing.Procedure { return procedures[of] }

// rulesOf are the rules that could have made an item with this key.
func rulesOf(e *auditing.Evidence, target change.Key) (all []*plan.Binding) {
	for _, r := range e.Set.Rules {
		if b := e.Of(r); r.Kind == Mirror && r.Target.HasKey(target) && e.Judges(b.ID) {
			all = append(all, b)
		}
	}
	return all
}

// claimRows are the rows that name the sources of an item at a mirror's key, or what is in force of its one source.
func claimRows(e *auditing.Evidence, sus drift.Suspect) (keys []table.Key) {
	for _, b := range rulesOf(e, sus.Item) {
		if source, ok := b.Rule.SourceKey(sus.Item); ok {
			keys = append(keys, state.EntryKey(source))
		} else if b.Claimed() {
			keys = append(keys, state.ClaimsKey(b, sus.Item))
		}
	}
	return keys
}

func parkedRows(e *auditing.Evidence, sus drift.Suspect) []table.Key {
	return append(auditing.ParkedRows(e, sus), claimRows(e, sus)...)
}

// sourcesOf are the items that may ask for a mirror item, in the order of their keys'
// texts: those that the scan saw, those that claim it, and the one that its key names.
func sourcesOf(e *auditing.Evidence, sus drift.Suspect) []change.Key {
	texts := slices.Clone(sus.Members)
	for _, b := range rulesOf(e, sus.Item) {
		if source, ok := b.Rule.SourceKey(sus.Item); ok {
			texts = append(texts, source.String())
		} else if b.Claimed() {
			texts = append(texts, table.TextsOf(e.Rows[state.ClaimsKey(b, sus.Item)]["sources"])...)
		}
	}
	slices.Sort(texts)
	var sources []change.Key
	for _, text := range slices.Compact(texts) {
		sources = append(sources, change.ParseKey(text))
	}
	return sources
}

func itemAndSources(e *auditing.Evidence, sus drift.Suspect) []change.Key {
	return append([]change.Key{sus.Item}, sourcesOf(e, sus)...)
}

func judgeMirror(e *auditing.Evidence, sus drift.Suspect) drift.Reading {
	target, sources := e.Items[sus.Item], sourcesOf(e, sus)
	reading := drift.ReadingOf(sus, "")
	reading.Concerns = append(reading.Concerns, audit.MadeToken(sus.Item))
	var states []change.Value
	for _, r := range e.Set.Rules {
		if r.Kind == Mirror && r.Target.HasKey(sus.Item) {
			states = append(states, auditing.RuleValue(e.Of(r), target))
		}
	}
	for _, b := range rulesOf(e, sus.Item) {
		var want *mirrorItem
		for _, source := range sources { // the smallest wins
			if k, it, ok := itemIn(e.Asked(source), b, sus.Item); ok {
				it.expired, want = expired(e, b, source, k, it), &it
				reading.Fix.Keys = append(reading.Fix.Keys, source) // its ledger entry may be behind
				break
			}
		}
		reading.Findings = append(reading.Findings, compare(e.Auditor, b, sus.Item, target, want)...)
	}
	for _, source := range sources {
		states = append(states, auditing.EffectsValue(e.Asked(source)))
		reading.Concerns = append(reading.Concerns, drift.KeyToken(source))
	}
	reading.State = change.Digest(states...)
	return reading
}

// expired reports whether the state table notes that DynamoDB's time to live deleted
// the mirror item for which a source asks.
func expired(e *auditing.Evidence, b *plan.Binding, source change.Key, k effects.Key, it mirrorItem) bool {
	if b.Claimed() {
		return table.TextOf(e.Rows[state.ClaimsKey(b, it.target)]["expired"]) == it.digest
	}
	it.expired = true
	return auditing.EffectsIn(e.Rows[state.EntryKey(source)])[k] == it.String()
}

// parkings are where the item, or one of its sources, is parked.
func parkings(e *auditing.Evidence, r *drift.Reading, _ drift.Finding) (keys []table.Key) {
	for _, b := range rulesOf(e, r.Suspect.Item) {
		for _, item := range itemAndSources(e, r.Suspect) {
			keys = append(keys, state.ParkedItemKey(b.ID, item))
		}
	}
	return keys
}

// judgeParked judges what is parked of a mirror item, which has to be while another
// program's item occupies its place, or of a source.
func judgeParked(e *auditing.Evidence, sus drift.Suspect) drift.Reading {
	b, want := e.ByID(sus.Rule), ""
	if !b.Rule.Target.HasKey(sus.Item) {
		return e.JudgeParked(sus, e.ParkedEffect(sus))
	}
	wanted := slices.ContainsFunc(sourcesOf(e, sus), func(source change.Key) bool {
		_, _, ok := itemIn(e.Asked(source), b, sus.Item)
		return ok
	})
	if wanted && placeOf(b, sus.Item, table.Image(e.Items[sus.Item])) == placeOccupied {
		want = occupiedCode
	}
	return e.JudgeParked(sus, want)
}
