// Package handlers is dynamill on AWS Lambda: a handler that takes the raw
// payload of an invocation, finds the stream records in it, feeds them to a
// Processor and answers which of them have to come again.
//
//	lambda.Start(handler)
//
// Four payloads are understood, told apart by their shape: a DynamoDB stream
// event, SQS messages whose bodies are stream records, a batch of EventBridge
// Pipes, and a late batch: the object that Lambda leaves in S3 when it gave a batch
// up. It is never applied from its images: its items are rederived. Beside them
// there are three commands. With {"dynamill":"tasks"} a schedule has a TaskWorker do
// what is due without a record; the answer is {"pieces":n,"done":true|false}.
// {"dynamill":"late","object":"s3://bucket/key"} names a late batch, which ReadObject reads. With
// {"dynamill":"replay",...} a state machine has a Replayer work off what is in the table.
//
// It imports change, internal/dynamojson, and lambdacontext of aws-lambda-go for the
// request's id; it knows nothing of rules or projections, nor of the other drivers. One
// pass over the JSON validates everything, and only those attributes are made into
// values that the Processor looks up.
//
// It keeps these promises of docs/guarantees.md:
//
//   - At least once, never less (promise 2 builds on it): a record is left out of
//     the answer's failures only when the Processor says that it is done, or when
//     it is parked. The event source mapping must have ReportBatchItemFailures
//     among its function response types: without it, Lambda takes every answer
//     for success.
//   - Nothing is lost in silence (promise 7): a record that cannot be read is
//     parked with its JSON, and its item rederived if its key can be read; a
//     payload that cannot be read is an error that names what was found.
//   - No zombie harm (promise 3): an invocation answers only after every call it
//     made has returned, so a frozen environment does not wake up amid a write.
//
// A standard SQS queue keeps no order. A record that comes after a later one of its
// item changes nothing, as long as the engine remembers the later one: while the item
// has effects, and then as long as the state table keeps its tombstone (8 days). So a
// queue must not retain messages for longer, its dead-letter queue included. This
// holds for records that cannot be read as well, if their positions can; one without
// a position is safe only from what comes in the same batch.
package handlers
