// Package handlers is dynamill on AWS Lambda: a handler that takes the raw
// payload of an invocation, finds the stream records in it, feeds them to a
// Processor and answers which of them have to come again.
//
//	lambda.Start(handler)
//
// Four payloads are understood, told apart by their shape: a DynamoDB stream
// event, SQS messages whose bodies are stream records, a batch of EventBridge
// Pipes, and the object that Lambda leaves in S3 when it gave a batch up. A late
// batch of that last kind is never applied from its images, only its keys are used.
// Beside them there is {"dynamill":"tasks"}, with which a schedule has a TaskWorker
// do what is due without a record; the answer is {"pieces":n,"done":true|false}.
//
// It imports change, and lambdacontext of aws-lambda-go for the request's id; it
// knows nothing of rules or projections, nor of the other drivers. The decoding
// is its own because of speed: one pass over the JSON validates everything,
// and only those attributes are made into values that somebody looks up.
//
// It keeps these promises of docs/guarantees.md:
//
//   - At least once, never less (promise 2 builds on it): a record is left out of
//     the answer's failures only when the Processor says that it is done, or when
//     it is parked. The event source mapping must have ReportBatchItemFailures
//     among its function response types: without it, Lambda takes every answer
//     for success.
//   - Nothing is lost in silence (promise 7): a record that cannot be read is
//     parked with its JSON; a payload that cannot be read is an error that names
//     what was found.
//   - No zombie harm (promise 3): an invocation answers only after every call it
//     made has returned, so a frozen environment does not wake up amid a write.
//
// A standard SQS queue keeps no order. Records that overtake each other are
// harmless to the engine as long as it remembers the later one, so a queue must
// not retain messages for longer than the state table keeps its tombstones (8 days).
package handlers
