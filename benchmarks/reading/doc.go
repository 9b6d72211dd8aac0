// Command reading measures how fast a stream's records are read, from the
// oldest one on, at the endpoint that DYNAMILL_TEST_ENDPOINT names:
//
//   - bare is a loop of GetRecords with the AWS SDK and nothing around it;
//   - dynamill is streamreader.Reader as `dynamill run` configures it, with its
//     lease table at the same endpoint and a Processor that only counts;
//   - redpanda is Redpanda Connect's input aws_dynamodb_cdc with its checkpoint
//     table there, and an output that counts messages and drops them.
//
// One table is written once. Then each reads it from its start, in turn, in
// rounds; every round begins with a new lease or checkpoint table. The clock
// runs from before the reader is made until the last record has arrived, so it
// includes describing the stream and making those tables. What stopping takes
// is not measured. How fast it goes once the first records are there is
// reported, too, and decides nothing.
//
// It is a module of its own, so that what Redpanda Connect needs stays out of
// dynamill's go.mod.
package main
