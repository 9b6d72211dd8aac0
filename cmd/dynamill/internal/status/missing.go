package status

import (
	"fmt"
	"strings"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/parked"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/report"
	"github.com/dynamill/dynamill/internal/sighting"
	"github.com/dynamill/dynamill/projections"
)

// recordedMissing is, as JSON, a rule whose sources point at items that do not exist, as a process wrote it down.
type recordedMissing struct {
	report.MissingReport
	At    string `json:"at"`
	Whole bool   `json:"whole"` // after a look at the whole table

	text string
}

// recordedMissingOf are the rows of the state table, by rule.
func recordedMissingOf(rows []projections.RecordedMissing) []recordedMissing {
	all := []recordedMissing{}
	for _, r := range rows {
		all = append(all, recordedMissing{report.MissingOf(r.MissingTargets), r.At.UTC().Format(parked.TimeForm), r.Whole, sighting.MissingText(r.MissingTargets)})
	}
	return all
}

// writeMissing lists the rules whose sources point at items that do not exist, and says from when that is.
func writeMissing(b *strings.Builder, rows []recordedMissing) {
	if len(rows) == 0 {
		return
	}
	b.WriteString("\ntargets that do not exist\n")
	remedy := false
	for _, r := range rows {
		seen := "as a process has seen it since it started"
		if r.Whole {
			seen = "after a look at the whole table"
		}
		fmt.Fprintf(b, "  %s (%s, %s)\n", r.text, seen, r.At)
		remedy = remedy || r.OtherCase != ""
	}
	if remedy {
		fmt.Fprintf(b, "  %s\n", sighting.CaseRemedy)
	}
	b.WriteString("  `dynamill verify` looks anew\n")
}
