// Package monitor says how a running dynamill is, to people and to machines: a
// named state with its remedy, metrics in Prometheus' format, and whether it is
// alive and ready.
//
// It reads neither engine nor reader: their owner hands over a Sample with what
// both say of themselves whenever one is asked for, and everything that is served
// follows from that. What they say more of one day is one more line in metrics.go.
// It imports projections, streamreader and Prometheus' client library, which is why
// the Lambda function must not import it.
package monitor
