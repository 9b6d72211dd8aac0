package monitor

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dynamill/dynamill/projections"
)

// metric is one line of docs/operations.md's table.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(s Sample, emit func(value float64, labels ...string))
}

func define(kind prometheus.ValueType, name, help string, labels []string, of func(Sample, func(float64, ...string))) metric {
	return metric{prometheus.NewDesc(name, help, labels, nil), kind, of}
}

// counter and gauge have no label.
func counter(name, help string, of func(Sample) int64) metric {
	return define(prometheus.CounterValue, name, help, nil, func(s Sample, emit func(float64, ...string)) { emit(float64(of(s))) })
}

func gauge(name, help string, of func(Sample) float64) metric {
	return define(prometheus.GaugeValue, name, help, nil, func(s Sample, emit func(float64, ...string)) { emit(of(s)) })
}

// each has one label, and a value for each element of a list. A value below 0 is not known, and left out.
func each[T any](kind prometheus.ValueType, name, help, label string, list func(Sample) []T, of func(T) (string, float64)) metric {
	return define(kind, name, help, []string{label}, func(s Sample, emit func(float64, ...string)) {
		for _, element := range list(s) {
			if labelled, value := of(element); value >= 0 {
				emit(value, labelled)
			}
		}
	})
}

// The lists that metrics with a label go through.
func shardsOf(s Sample) []Shard                       { return s.Shards }
func rulesOf(s Sample) []projections.RuleStats        { return s.Rules }
func missingOf(s Sample) []projections.MissingTargets { return s.Missing }
func entitiesOf(s Sample) []projections.EntityMatches { return s.Entities }

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// metrics are all that is served beside the client library's own go_ and process_ ones.
func metrics(lagMax time.Duration) []metric {
	all := []metric{
		define(prometheus.GaugeValue, "dynamill_state", "1 for the state that the process is in, 0 for every other.", []string{"state"},
			func(s Sample, emit func(float64, ...string)) {
				for _, state := range States() {
					emit(one(s.Status.State == state), string(state))
				}
			}),
		gauge("dynamill_ready", "1 if /readyz says yes.", func(s Sample) float64 { return one(len(s.notReady(lagMax)) == 0) }),
	}
	all = append(all, shardMetrics()...)
	all = append(all, recordMetrics()...)
	all = append(all, unfinishedMetrics()...)
	return append(all, writeMetrics()...)
}

// unfinishedMetrics are served once the state table was read.
func unfinishedMetrics() []metric {
	known := func(of func(u projections.Unfinished, at time.Time, emit func(float64, ...string))) func(Sample, func(float64, ...string)) {
		return func(s Sample, emit func(float64, ...string)) {
			if s.Unfinished != nil {
				of(*s.Unfinished, s.At, emit)
			}
		}
	}
	return []metric{
		define(prometheus.GaugeValue, "dynamill_parked_entries", "Items and records that are parked in the state table.", []string{"code"},
			known(func(u projections.Unfinished, _ time.Time, emit func(float64, ...string)) {
				for code, n := range u.Parked {
					emit(float64(n), code)
				}
			})),
		define(prometheus.GaugeValue, "dynamill_tasks_left", "Tasks in the state table that are not worked off.", nil,
			known(func(u projections.Unfinished, _ time.Time, emit func(float64, ...string)) { emit(float64(u.Tasks)) })),
		define(prometheus.GaugeValue, "dynamill_oldest_task_seconds", "Age of the oldest task that is not worked off; 0 if there is none.", nil,
			known(func(u projections.Unfinished, at time.Time, emit func(float64, ...string)) {
				if u.OldestTask.IsZero() {
					emit(0)
					return
				}
				emit(max(0, at.Sub(u.OldestTask).Seconds()))
			})),
	}
}

func shardMetrics() []metric {
	return []metric{
		gauge("dynamill_oldest_unapplied_seconds",
			"Age of the oldest record that is not applied, over the shards that this process reads; 0 when nothing waits.",
			func(s Sample) float64 { return s.Stream.OldestAge.Seconds() }),
		each(prometheus.GaugeValue, "dynamill_shard_oldest_unapplied_seconds",
			"Age of the oldest record of a shard that is not applied; 0 when nothing waits.", "shard",
			shardsOf, func(s Shard) (string, float64) { return s.ID, s.OldestAge.Seconds() }),
		gauge("dynamill_lag_seconds", "Age of what is applied in the shard that is furthest behind; 0 when nothing waits.",
			func(s Sample) float64 { return s.Stream.Lag.Seconds() }),
		each(prometheus.GaugeValue, "dynamill_shard_lag_seconds",
			"Age of what is applied of a shard that this process reads; 0 when nothing waits.", "shard",
			shardsOf, func(s Shard) (string, float64) { return s.ID, s.Lag.Seconds() }),
		each(prometheus.GaugeValue, "dynamill_shard_lag_records",
			"Records of a shard that are not applied yet, where that is known.", "shard",
			shardsOf, func(s Shard) (string, float64) { return s.ID, float64(s.LagRecords) }),
		define(prometheus.GaugeValue, "dynamill_shards", "Shards: open are being read, waiting ones follow their parent, finished ones are done.",
			[]string{"status"},
			func(s Sample, emit func(float64, ...string)) {
				emit(float64(s.Stream.Open), "open")
				emit(float64(s.Stream.Waiting), "waiting")
				emit(float64(s.Stream.Finished), "finished")
			}),
		gauge("dynamill_shards_without_reader", "Shards that no process reads although one should.",
			func(s Sample) float64 { return float64(len(s.unread())) }),
		gauge("dynamill_last_progress_timestamp_seconds",
			"When the shard that has made no progress for the longest time last did, as Unix time; 0 before the first.",
			func(s Sample) float64 {
				if s.Stream.LastProgress.IsZero() {
					return 0
				}
				return float64(s.Stream.LastProgress.UnixMilli()) / 1000
			}),
		counter("dynamill_lease_moves_total", "Shards whose lease this process took, or gave away.",
			func(s Sample) int64 { return s.Stream.LeaseMoves }),
	}
}

func recordMetrics() []metric {
	return []metric{
		counter("dynamill_records_read_total", "Records handed to the engine; those that failed count again.",
			func(s Sample) int64 { return s.Read }),
		counter("dynamill_records_applied_total", "Records whose effects are durable.", func(s Sample) int64 { return s.Stream.Records }),
		counter("dynamill_records_relevant_total", "Records that some rule had to act on.", func(s Sample) int64 { return s.Engine.Relevant }),
		counter("dynamill_records_unmatched_total", "Records of items of no entity.", func(s Sample) int64 { return s.Engine.Unmatched }),
		each(prometheus.CounterValue, "dynamill_records_matched_total",
			"Records of an entity's items.", "entity",
			entitiesOf, func(e projections.EntityMatches) (string, float64) { return e.Entity, float64(e.Records) }),
		each(prometheus.GaugeValue, "dynamill_missing_targets",
			"Items that do not exist at which sources of a rule point, as far as this process has seen.", "rule",
			missingOf, func(m projections.MissingTargets) (string, float64) { return m.Rule, float64(m.Targets) }),
		each(prometheus.GaugeValue, "dynamill_missing_target_sources",
			"Sources of a rule that point at items that do not exist, as far as this process has seen.", "rule",
			missingOf, func(m projections.MissingTargets) (string, float64) { return m.Rule, float64(m.Sources) }),
		counter("dynamill_parked_total", "Items or records set aside because they can never succeed as they are.",
			func(s Sample) int64 { return s.Engine.Parked }),
		counter("dynamill_heals_total", "Corrections of what another program wrote over derived data.",
			func(s Sample) int64 { return s.Engine.Heals }),
		counter("dynamill_tasks_total", "Large fan-outs whose rest became a task.", func(s Sample) int64 { return s.Engine.Tasks }),
		counter("dynamill_task_pieces_total", "Pieces of tasks worked off.", func(s Sample) int64 { return s.TaskPieces }),
	}
}

func writeMetrics() []metric {
	return []metric{
		each(prometheus.CounterValue, "dynamill_writes_total",
			"Items written for a rule.", "rule",
			rulesOf, func(r projections.RuleStats) (string, float64) { return r.Rule, float64(r.Writes) }),
		each(prometheus.CounterValue, "dynamill_write_units_total",
			"Write units that DynamoDB reported for a rule's writes.", "rule",
			rulesOf, func(r projections.RuleStats) (string, float64) { return r.Rule, r.WriteUnits }),
		counter("dynamill_write_requests_total", "Write requests sent, transactions among them.",
			func(s Sample) int64 { return s.Engine.Writes }),
		counter("dynamill_transactions_total", "Transactions sent.", func(s Sample) int64 { return s.Engine.Transactions }),
		counter("dynamill_retries_total", "Requests sent again after a failure that passes.", func(s Sample) int64 { return s.Engine.Retries }),
		counter("dynamill_conflicts_total", "Requests refused because another writer changed the same item.",
			func(s Sample) int64 { return s.Engine.Conflicts }),
		counter("dynamill_throttles_total", "Requests refused for want of capacity.", func(s Sample) int64 { return s.Engine.Throttles }),
		define(prometheus.CounterValue, "dynamill_write_wait_seconds_total", "Time that writes waited for --max-write-rate, added up.", nil,
			func(s Sample, emit func(float64, ...string)) { emit(s.WriteWait.Seconds()) }),
	}
}

// collector makes one Sample a scrape, so that its numbers are of one moment.
type collector struct {
	metrics []metric
	take    func() Sample
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range c.metrics {
		out <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	sample := c.take()
	for _, m := range c.metrics {
		m.of(sample, func(value float64, labels ...string) {
			out <- prometheus.MustNewConstMetric(m.desc, m.kind, value, labels...)
		})
	}
}
