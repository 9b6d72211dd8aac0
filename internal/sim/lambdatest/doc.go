// Package lambdatest runs a function's binary as AWS Lambda would, and feeds it
// from a DynamoDB stream as an event source mapping would, both on one machine
// and without an AWS account.
//
//	function := &lambdatest.Function{
//		Command: func() *exec.Cmd { return exec.Command("./bootstrap") },
//		Timeout: 10 * time.Second,
//	}
//	defer function.Close()
//	mapping := &lambdatest.Mapping{
//		Streams: streams, StreamARN: arn, PartitionKey: "pk",
//		Function: function, BatchSize: 100, ReportBatchItemFailures: true,
//	}
//	go mapping.Run(ctx)
//	... // write to the table
//	err := mapping.Settle(ctx) // everything has been delivered
//
// Runtime is the Runtime API, which the binary asks for work; Environment is one
// process with its Runtime, frozen between invocations; Function is as many of them
// as there are concurrent invocations. Mapping reads the stream, makes batches, and
// does with what the function answers what the Lambda developer guide says.
// What it discards goes to a Destination. Put between the two, a Queue makes each
// record a message of a standard SQS queue.
//
// Machine carries out a state machine of Step Functions that calls a function.
//
// All of that is what happens to every function. What may happen to one besides
// is drawn by the test: Function.Fate has an environment killed, paused or
// given up for dead amid an invocation, Mapping.Again has a batch delivered
// twice, and Mapping.Corrupt has a record malformed.
//
// Where the documentation leaves something open, these stand-ins do what is
// hardest on the function and say so. They are for tests: nothing is kept on disk,
// and no limit of size or rate is enforced, but that
// of a state machine's states. SIGSTOP and SIGCONT are needed, so
// they do not run on Windows.
//
// It imports the AWS SDK's types of streams, and no other room.
package lambdatest
