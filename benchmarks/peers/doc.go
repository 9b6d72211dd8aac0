// Command peers measures dynamill beside handlers of a stream as a team writes
// them by hand with the AWS SDK: how long the same work takes, which requests and
// write units it costs, how much CPU time and memory, and whether the result is
// still right when everything was delivered twice.
//
//   - count: new items are counted into counters;
//   - rename: a parent with many children is renamed;
//   - fill: new children get the name of their parent;
//   - mirror: new items get a second item each, with the keys turned round;
//   - latency: how long one new item takes from its write until its mirror item is there;
//   - start-up: how long a process takes from its start until a first change is visible;
//   - idle: what a process takes that follows 1,000 shards, without records and with 500 a second.
//
// Each contender runs in a process of its own, in turn with the others, on a new table. It
// starts first and is ready to read; its first GetRecords is held back until all changes are
// written. The clock runs from then until the last derived value is in the table, which this
// command sees in the table's stream. Requests, units and CPU time are counted on until the contender
// has had nothing to do for a while, so that a contender's reading of its own writes is included.
//
// The simulator's requests each take as long as the flags say. Other endpoints are as fast as they are.
//
// It is a module of its own, so that nothing of it is in dynamill's go.mod.
package main
