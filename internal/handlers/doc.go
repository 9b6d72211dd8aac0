// Package handlers is dynamill on AWS Lambda: a handler that takes the raw payload of an invocation, finds the stream
// records in it, feeds them to a Processor and answers which of them have to come again.
//
//	lambda.Start(handler)
//
// It tells four payloads apart by their shape: a DynamoDB stream event, SQS messages whose bodies are stream records, a
// batch of EventBridge Pipes, and a late batch: the object that Lambda leaves in S3 when it gives a batch up, and whose
// items are rederived. Three commands have no records: {"dynamill":"tasks"} has a TaskWorker do what is due and answers
// {"pieces":n,"done":true|false}, {"dynamill":"late","object":"s3://bucket/key"} names a late batch, and
// {"dynamill":"replay",...} has a Replayer work off what is in the table.
//
// It imports change, internal/dynamojson, and lambdacontext of aws-lambda-go for the request's id; it knows nothing of
// rules, projections or the other drivers. It keeps these promises of docs/guarantees.md:
//
//   - At least once, never less (promise 2 builds on it): the answer leaves a record out only if the Processor says that
//     it is done, or if it is parked. The event source mapping must have ReportBatchItemFailures among its function
//     response types: without it, Lambda takes every answer for success.
//   - Nothing is lost in silence (promise 7): a record that cannot be read is parked with its JSON, and its item rederived
//     if its key can be read; a payload that cannot be read is an error that names what was found.
//   - No zombie harm (promise 3): an invocation answers only after every call it made has returned, so a frozen
//     environment does not wake up amid a write.
//
// A standard SQS queue keeps no order. A record that comes after a later one of its item changes nothing as long as the
// engine remembers the later one: while the item has effects, and then for the 8 days of its tombstone. So a queue and its
// dead-letter queue must not retain messages for longer. A record without a readable position is safe only from what comes
// in the same batch.
package handlers
