package target_test

import (
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

// TestAConditionOnATextAcceptsTheValuesOfThatText: a number is known by its shortest text alone.
func TestAConditionOnATextAcceptsTheValuesOfThatText(t *testing.T) {
	for text, want := range map[string][]change.Value{
		"a": {change.String("a")}, "1": {change.String("1"), change.Number("1")}, "01": {change.String("01")}, "1.0": {change.String("1.0")},
		"-2.5": {change.String("-2.5"), change.Number("-2.5")}, "true": {change.String("true"), change.Bool(true)},
	} {
		c := table.NewExpression()
		target.HoldsText(c, "slug", text)
		got := make([]change.Value, len(c.Values))
		for i := range got {
			got[i] = attributes.FromTable(c.Values[":v"+strconv.Itoa(i)])
		}
		if !slices.EqualFunc(got, want, change.Value.Equal) {
			t.Errorf("text %q: accepts %v, want %v", text, got, want)
		}
	}
}

// TestALaterStampIsOneThatTheConditionRefuses compares IsLater with UnstampedOrNotLater as the simulated DynamoDB evaluates it.
func TestALaterStampIsOneThatTheConditionRefuses(t *testing.T) {
	w := newWorld(t, 1, dynamosim.Options{})
	own := stamp.Stamp{Context: stamp.Context("incarnation", change.Key{Partition: "0"}, ""), Version: stamp.VersionOf(3, 70)}
	of := func(v stamp.Version) change.Value {
		return change.String(stamp.Stamp{Context: own.Context, Version: v, Digest: "12345678"}.String())
	}
	for name, c := range map[string]struct {
		stamped change.Value
		later   bool
	}{
		"none":                  {change.Value{}, false},
		"a number":              {change.Number("7"), false},
		"another context":       {change.String("anything" + string(stamp.VersionOf(3, 71))), false},
		"a lower count":         {of(stamp.VersionOf(3, 69)), false},
		"the same count":        {of(own.Version), false},
		"a higher count":        {of(stamp.VersionOf(3, 71)), true},
		"above every count":     {change.String(own.Context + string(stamp.VersionOf(3, math.MaxInt64)) + "~"), false},
		"an older rules epoch":  {of(stamp.VersionOf(2, 1000)), false},
		"a later rules epoch":   {of(stamp.VersionOf(4, 0)), true},
		"the last rules epoch":  {of(stamp.VersionOf(stamp.EpochMax-1, 0)), true},
		"behind every epoch":    {change.String(own.Context + "~~~~"), false},
		"a context and no more": {change.String(own.Context), false},
	} {
		t.Run(name, func(t *testing.T) {
			row := table.Row{"pk": table.Text("0")}
			if c.stamped.Kind() != change.KindAbsent {
				row["_dm_r"] = attributes.ToTable(c.stamped)
			}
			if _, err := w.sim.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: new("app"), Item: row}); err != nil {
				t.Fatal(err)
			}
			write := target.On(w.rule, "writing", change.Key{Partition: "0"})
			write.Put("seen", change.Bool(true))
			write.Condition = target.UnstampedOrNotLater(write.Expression, "_dm_r", own)
			ended, _, err := w.writer.Write(t.Context(), write)
			if err != nil {
				t.Fatal(err)
			}
			if got := target.IsLater(c.stamped, own); got != c.later || got != (ended == target.RaceLost) {
				t.Errorf("later: %v, want %v; the write ends with %d", got, c.later, ended)
			}
		})
	}
}
