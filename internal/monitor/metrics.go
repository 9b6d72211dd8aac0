package monitor

import "github.com/prometheus/client_golang/prometheus"

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

// collector makes one Sample a scrape, so that its numbers are of one moment.
type collector struct{ Config }

// Describe implements prometheus.Collector. It names no metric beforehand: a scrape has those that are known.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	s, w := c.Take(), scrape{out}
	for _, state := range States() {
		w.labelled(gauge, "dynamill_state", "1 for the state that the process is in, 0 for every other.", "state", string(state),
			one(s.Status.State == state))
	}
	w.gauge("dynamill_ready", "1 if /readyz says yes.", one(len(s.notReady(c.LagMax)) == 0))
	w.shards(s)
	w.records(s)
	w.unfinished(s)
	w.writes(s)
}

// scrape sends metrics, each of which is one line of docs/operations.md's table.
type scrape struct{ out chan<- prometheus.Metric }

func (w scrape) counter(name, help string, value int64) {
	w.out <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, nil), counter, float64(value))
}

func (w scrape) gauge(name, help string, value float64) {
	w.out <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, nil), gauge, value)
}

// labelled sends one value of a metric with a label.
func (w scrape) labelled(kind prometheus.ValueType, name, help, label, of string, value float64) {
	w.out <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, []string{label}, nil), kind, value, of)
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func (w scrape) shards(s Sample) {
	w.gauge("dynamill_oldest_unapplied_seconds",
		"Age of the oldest record that is not applied, over the shards that this process reads; 0 when nothing waits.",
		s.Stream.OldestAge.Seconds())
	w.gauge("dynamill_lag_seconds", "Age of the newest applied record in the shard that is furthest behind; 0 when nothing waits.",
		s.Stream.Lag.Seconds())
	for _, shard := range s.Stream.Shards {
		if !shard.Mine { // its own process knows better
			continue
		}
		w.labelled(gauge, "dynamill_shard_oldest_unapplied_seconds",
			"Age of the oldest record of a shard that is not applied; 0 when nothing waits.", "shard", shard.ID, shard.OldestAge.Seconds())
		w.labelled(gauge, "dynamill_shard_lag_seconds",
			"Age of the newest applied record of a shard that this process reads; 0 when nothing waits.", "shard", shard.ID,
			shard.Lag.Seconds())
	}
	for status, n := range map[string]int{"open": s.Stream.Open, "waiting": s.Stream.Waiting, "finished": s.Stream.Finished} {
		w.labelled(gauge, "dynamill_shards", "Shards: open are being read, waiting ones follow their parent, finished ones are done.",
			"status", status, float64(n))
	}
	w.gauge("dynamill_shards_without_reader", "Shards that no process reads although one should.", float64(len(s.unread())))
	progress := 0.0
	if !s.Stream.LastProgress.IsZero() {
		progress = float64(s.Stream.LastProgress.UnixMilli()) / 1000
	}
	w.gauge("dynamill_last_progress_timestamp_seconds",
		"When the shard that has made no progress for the longest time last did, as Unix time; 0 before the first.", progress)
	w.counter("dynamill_lease_moves_total", "Shards whose lease this process took, or gave away.", s.Stream.LeaseMoves)
}

func (w scrape) records(s Sample) {
	w.counter("dynamill_records_read_total", "Records handed to the engine; those that failed count again.", s.Read)
	w.counter("dynamill_records_applied_total", "Records whose effects are durable.", s.Stream.Records)
	w.counter("dynamill_records_relevant_total", "Records that some rule had to act on.", s.Engine.Relevant)
	w.counter("dynamill_records_unmatched_total", "Records of items of no entity.", s.Engine.Unmatched)
	for _, e := range s.Entities {
		w.labelled(counter, "dynamill_records_matched_total", "Records of an entity's items.", "entity", e.Entity, float64(e.Records))
	}
	for _, m := range s.Missing {
		w.labelled(gauge, "dynamill_missing_targets",
			"Items that do not exist at which sources of a rule point, as far as this process has seen.", "rule", m.Rule, float64(m.Targets))
		w.labelled(gauge, "dynamill_missing_target_sources",
			"Sources of a rule that point at items that do not exist, as far as this process has seen.", "rule", m.Rule, float64(m.Sources))
	}
	w.counter("dynamill_parked_total", "Items or records set aside because they can never succeed as they are.", s.Engine.Parked)
	w.counter("dynamill_heals_total", "Corrections of what another program wrote over derived data.", s.Engine.Heals)
	w.counter("dynamill_children_deleted_total", "Items of the application that rules deleted with their parents.", s.Engine.Deleted)
	w.counter("dynamill_tasks_total", "Large fan-outs whose rest became a task.", s.Engine.Tasks)
	w.counter("dynamill_task_pieces_total", "Pieces of tasks worked off.", s.Engine.TaskPieces)
}

// unfinished sends what is known once the state table was read.
func (w scrape) unfinished(s Sample) {
	if s.Unfinished == nil {
		return
	}
	for code, n := range s.Unfinished.Parked {
		w.labelled(gauge, "dynamill_parked_entries", "Items and records that are parked in the state table.", "code", code, float64(n))
	}
	w.gauge("dynamill_tasks_left", "Large fan-outs whose rest is not worked off.", float64(s.Unfinished.Tasks))
	age := 0.0
	if oldest := s.Unfinished.OldestTask; !oldest.IsZero() {
		age = max(0, s.At.Sub(oldest).Seconds())
	}
	w.gauge("dynamill_oldest_task_seconds", "Age of the oldest task that is not worked off; 0 if there is none.", age)
}

func (w scrape) writes(s Sample) {
	for _, r := range s.Rules {
		w.labelled(counter, "dynamill_writes_total", "Items written for a rule.", "rule", r.Rule, float64(r.Writes))
		w.labelled(counter, "dynamill_write_units_total", "Write units that DynamoDB reported for a rule's writes.", "rule", r.Rule, r.WriteUnits)
	}
	w.counter("dynamill_write_requests_total", "Write requests sent, transactions among them.", s.Engine.Writes)
	w.counter("dynamill_transactions_total", "Transactions sent.", s.Engine.Transactions)
	w.counter("dynamill_retries_total", "Requests sent again after a transient failure.", s.Engine.Retries)
	w.counter("dynamill_conflicts_total", "Requests refused because another writer changed the same item.", s.Engine.Conflicts)
	w.counter("dynamill_throttles_total", "Requests refused for want of capacity.", s.Engine.Throttles)
	if s.Budget.UnitsPerSecond == 0 {
		return
	}
	w.gauge("dynamill_budget_units_per_second", "Write units per second of --budget.", float64(s.Budget.UnitsPerSecond))
	w.gauge("dynamill_budget_spending_units_per_second", "Write units per second of the last ten seconds.", s.Budget.Spending)
	for work, since := range s.Budget.Waits {
		w.labelled(gauge, "dynamill_budget_wait_seconds", "How long some work has had to wait for --budget.", "work", work,
			max(0, s.At.Sub(since).Seconds()))
	}
}
