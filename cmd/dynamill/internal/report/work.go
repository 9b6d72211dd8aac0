package report

import (
	"fmt"

	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/rules"
)

// EngineWork is what an engine did for a command.
type EngineWork struct {
	Writes     int64              // requests
	WriteUnits float64            // of all rules
	Rules      map[string]float64 // write units of the rules that wrote anything
}

func WorkOf(e *projections.Engine) EngineWork {
	w := EngineWork{Writes: e.Stats().Writes, Rules: map[string]float64{}}
	for _, rule := range e.RuleStats() {
		if w.WriteUnits += rule.WriteUnits; rule.WriteUnits > 0 {
			w.Rules[rule.Rule] = rule.WriteUnits
		}
	}
	return w
}

func KindName(kind rules.Kind) string {
	switch kind {
	case rules.Copy:
		return "copy"
	case rules.Mirror:
		return "mirror"
	case rules.Count:
		return "count"
	case rules.Sum:
		return "sum"
	}
	return fmt.Sprintf("kind %d", kind)
}
