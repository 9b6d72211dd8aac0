package infra

import (
	"slices"
	"time"
)

// A replay's state machine (docs/replay.md, "On AWS's own engine"): it asks the
// function what is to be done, has each piece worked off by an execution of its own,
// and asks again, until nothing is left.
//
// The function is another one than the stream's: it needs more time for one
// invocation and may scan. What keeps a replay from taking the concurrency that the
// stream's function needs is the map's MaxConcurrency. No concurrency is reserved:
// that would be taken from the account's other functions at all times, also while
// nothing is replayed, and fails where less than 100 would be left to them (Lambda
// developer guide, "Configuring reserved concurrency").
const (
	replayTimeout = timeoutMax
	// taskTimeout is for an invocation of which nothing is heard any more.
	taskTimeout = replayTimeout + time.Minute

	// piecesLabel names the map in ARNs.
	piecesLabel = "Pieces"
)

// Definition writes the state machine alone, in the Amazon States Language. In it,
// ${ReplayFunctionArn} stands for the function's ARN, and ${Partition} for AWS's: aws, aws-cn or aws-us-gov.
func Definition(o Options) ([]byte, error) {
	o.Replay = true
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	d := deployment{Options: o}
	return []byte(jsonOf(d.definition(), map[string]string{"replayFunction": "ReplayFunctionArn", "partition": "Partition"})), nil
}

// definition is the state machine. It is of type STANDARD, and so are the
// executions of the pieces: EXPRESS ones end after five minutes (Step Functions
// developer guide, "Choosing workflow type").
func (d deployment) definition() block {
	whole := block{{key: "OutputPath", value: "$.Payload"}}
	return block{
		{key: "Comment", value: "Replays table " + d.Table + " with dynamill"},
		{key: "StartAt", value: "Begin"},
		{key: "States", value: block{
			{key: "Begin", value: invocation(block{{key: "begin.$", value: "$"}}, whole, "Left", "RulesChangedError")},
			{key: "Left", value: choice("$.finished", "Replayed", "Pieces")},
			{key: "Pieces", value: d.pieces()},
			{key: "Next", value: invocation(block{{key: "next.$", value: "$.step"}}, whole, "Left")},
			{key: "Replayed", value: block{{key: "Type", value: "Succeed"}, {key: "OutputPath", value: nil}}},
		}},
	}
}

// pieces is the map over a step's pieces. Pieces may fail, however many: Next gives
// them out again, and fails if none is left but them. A piece's execution has nothing to
// say, since the outputs of all together must fit into a state's, and that of one that
// fails is all that is known of it, its input among it (Step Functions developer
// guide, "ResultWriter (Map)"): so none fails that could end otherwise.
func (d deployment) pieces() block {
	done := block{
		{key: "ResultSelector", value: block{{key: "done.$", value: "$.Payload.done"}}}, {key: "ResultPath", value: "$.answer"},
		{key: "Catch", value: list{block{{key: "ErrorEquals", value: list{"States.ALL"}}, {key: "ResultPath", value: nil},
			{key: "Next", value: "GivenUp"}}}},
	}
	return block{
		{key: "Type", value: "Map"},
		{key: "Label", value: piecesLabel},
		{key: "ItemsPath", value: "$.pieces"},
		{key: "ItemSelector", value: block{{key: "step.$", value: "$.step"}, {key: "piece.$", value: "$$.Map.Item.Value"}}},
		{key: "MaxConcurrency", value: d.ReplayConcurrency},
		{key: "ToleratedFailurePercentage", value: 100},
		{key: "ItemProcessor", value: block{
			{key: "ProcessorConfig", value: block{{key: "Mode", value: "DISTRIBUTED"}, {key: "ExecutionType", value: "STANDARD"}}},
			{key: "StartAt", value: "Work"},
			{key: "States", value: block{
				{key: "Work", value: invocation(block{{key: "work.$", value: "$.step"}, {key: "piece.$", value: "$.piece"}}, done, "Done")},
				{key: "Done", value: choice("$.answer.done", "Worked", "Work")},
				{key: "Worked", value: block{{key: "Type", value: "Succeed"}, {key: "OutputPath", value: nil}}},
				{key: "GivenUp", value: block{{key: "Type", value: "Succeed"}, {key: "OutputPath", value: nil}}},
			}},
		}},
		{key: "ResultPath", value: nil},
		{key: "Next", value: "Next"},
	}
}

// invocation calls the function; kept says what of its answer goes on, and final
// are errors of this call that no retry helps, beside those of every call.
func invocation(command, kept block, next string, final ...any) block {
	return slices.Concat(block{
		{key: "Type", value: "Task"},
		{key: "Resource", value: sub("arn:${partition}:states:::lambda:invoke")},
		{key: "Parameters", value: block{
			{key: "FunctionName", value: sub("${replayFunction}")},
			{key: "Payload", value: append(block{{key: "dynamill", value: "replay"}}, command...)},
		}},
		{key: "TimeoutSeconds", value: seconds(taskTimeout)},
		{key: "Retry", value: retries(final...)},
	}, kept, block{{key: "Next", value: next}})
}

// retries are told apart by error: what no retry helps (to agree to changed rules once
// more would be to agree to what has come into force meanwhile); what Lambda has for a while
// (Step Functions developer guide, "Handle transient Lambda service exceptions"); and
// the rest, an invocation that was killed or ran out of time among them. An
// invocation that answers starts the count anew.
func retries(final ...any) list {
	return list{
		block{
			{key: "ErrorEquals", value: append(list{"PayloadError", "ReplayStuckError", "DamagedFileError"}, final...)},
			{key: "MaxAttempts", value: 0},
		},
		block{
			{key: "ErrorEquals", value: list{"Lambda.ClientExecutionTimeoutException", "Lambda.ServiceException", "Lambda.AWSLambdaException",
				"Lambda.SdkClientException", "Lambda.TooManyRequestsException"}},
			{key: "IntervalSeconds", value: 2}, {key: "MaxAttempts", value: 12}, {key: "BackoffRate", value: 2},
			{key: "MaxDelaySeconds", value: 120}, {key: "JitterStrategy", value: "FULL"},
		},
		block{
			{key: "ErrorEquals", value: list{"States.ALL"}},
			{key: "IntervalSeconds", value: 10}, {key: "MaxAttempts", value: 5}, {key: "BackoffRate", value: 2},
			{key: "MaxDelaySeconds", value: 120}, {key: "JitterStrategy", value: "FULL"},
		},
	}
}

func choice(flag, yes, no string) block {
	return block{
		{key: "Type", value: "Choice"},
		{key: "Choices", value: list{block{{key: "Variable", value: flag}, {key: "BooleanEquals", value: true}, {key: "Next", value: yes}}}},
		{key: "Default", value: no},
	}
}
