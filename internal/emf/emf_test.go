package emf

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/internal/infra"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
)

func TestEachLineSaysWhatWasDoneSinceTheLast(t *testing.T) {
	var out strings.Builder
	m := &Meter{Out: &out, Table: "app"}
	for _, c := range []struct {
		stats  projections.Stats
		failed bool
	}{
		{projections.Stats{Records: 10, Relevant: 4, Writes: 3, Parked: 1}, false},
		{projections.Stats{Records: 12, Relevant: 5, Writes: 3, Parked: 1, Heals: 2}, true},
	} {
		if err := m.Report("r", c.stats, c.failed, 1500*time.Microsecond); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.SplitAfter(out.String(), "\n")
	if len(lines) != 3 || lines[2] != "" {
		t.Fatalf("want two lines, found %q", out.String())
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(lines[1]), &got); err != nil {
		t.Fatal(err)
	}
	header := got["_aws"].(map[string]any)
	if ago := time.Since(time.UnixMilli(int64(header["Timestamp"].(float64)))); ago < 0 || ago > time.Minute {
		t.Errorf("the line is %v old", ago)
	}
	directive := header["CloudWatchMetrics"].([]any)[0].(map[string]any)
	if diff := cmp.Diff([]any{[]any{"Table"}}, directive["Dimensions"]); diff != "" || directive["Namespace"] != "dynamill" {
		t.Errorf("namespace %v, dimensions (-want +got)\n%s", directive["Namespace"], diff)
	}
	var names []string
	for _, d := range directive["Metrics"].([]any) {
		name := d.(map[string]any)["Name"].(string)
		if _, number := got[name].(float64); !number {
			t.Errorf("the line has no number %s", name)
		}
		names = append(names, name)
	}
	if want := []string{"Records", "Relevant", "Writes", "Parked", "Heals", "Failed", "DurationMs"}; !slices.Equal(names, want) {
		t.Errorf("metrics %q, want %q", names, want)
	}
	delete(got, "_aws")
	want := map[string]any{"Table": "app", "requestId": "r", "Records": 2.0, "Relevant": 1.0, "Unmatched": 0.0, "Transactions": 0.0,
		"Writes":  0.0,
		"Rollups": 0.0, "Copies": 0.0, "Mirrors": 0.0, "Deleted": 0.0, "Parked": 0.0, "Heals": 2.0, "Failed": 1.0, "DurationMs": 1.5}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the second line (-want +got)\n%s", diff)
	}
}

// What alarms and dashboard of a template look at, the function must write.
func TestTemplatesLookAtTheFunctionsMetrics(t *testing.T) {
	set, err := rules.Load("dynamill.yaml", []byte(`version: 1
table: { keys: [pk, sk] }
entities:
  Group:  { key: { pk: "GROUP#${groupId}", sk: "METADATA" } }
  Member: { key: { pk: "GROUP#${groupId}", sk: "USER#${userId}" } }
rules:
  member-count: { count: Member, as: Group.memberCount }
`), projections.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	template, err := infra.Generate(infra.Terraform, set, infra.Options{Table: "app"})
	if err != nil {
		t.Fatal(err)
	}
	// Of metrics that are AWS's own, a namespace begins with AWS/.
	alarmed := regexp.MustCompile(`\n +namespace += "([a-z]+)"\n +metric_name += "(\w+)"\n +dimensions += \{\n +(\w+) += "app"\n`).
		FindAllStringSubmatch(string(template), -1)
	shown := regexp.MustCompile(`"([a-z]+)",\s+"(\w+)",\s+"(\w+)",\s+"app"`).FindAllStringSubmatch(string(template), -1)
	if len(alarmed) != 2 || len(shown) == 0 {
		t.Fatalf("%d alarms and %d rows of the dashboard are of the function's metrics", len(alarmed), len(shown))
	}
	var out bytes.Buffer
	m := Meter{Out: &out, Table: "app"}
	if err := m.Report("", projections.Stats{}, false, 0); err != nil {
		t.Fatal(err)
	}
	var line struct {
		AWS metadata `json:"_aws"`
	}
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	written := line.AWS.Metrics[0]
	for _, found := range append(alarmed, shown...) {
		known := slices.ContainsFunc(written.Metrics, func(d definition) bool { return d.Name == found[2] })
		if found[1] != written.Namespace || !known || found[3] != written.Dimensions[0][0] {
			t.Errorf("a template looks at %s %s of %s, the function writes %+v", found[1], found[2], found[3], written)
		}
	}
}
