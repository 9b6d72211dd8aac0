package infra

import "time"

// A replay's state machine (docs/replay.md, "On AWS's own engine"), which templates/definition.json has.
//
// It is of type STANDARD, and so are the executions of the pieces: EXPRESS ones end after five minutes (Step Functions
// developer guide, "Choosing workflow type"). Pieces may fail: Next gives them out again, and fails if none is left but them.
// A piece's execution has no output, because the outputs of all together must fit into a state's (Step Functions developer
// guide, "ResultWriter (Map)").
//
// Retries depend on the error's name. Some errors are never retried: to agree to changed rules again would agree to rules that
// came into force meanwhile. Lambda's transient errors (Step Functions developer guide, "Handle transient Lambda service
// exceptions") and all others have a count each. An invocation that answers resets it.
//
// The function is another one than the stream's: it needs more time for one invocation and may scan. The map's MaxConcurrency
// keeps a replay from taking the concurrency that the stream's function needs. No concurrency is reserved: that would be taken
// from the account's other functions also while nothing is replayed, and fails where less than 100 would be left to them
// (Lambda developer guide, "Configuring reserved concurrency").
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
	return []byte(deployment{Options: o}.DefinitionFor("${Partition}", "${ReplayFunctionArn}") + "\n"), nil
}

// DefinitionFor writes the state machine with a template's references.
func (d deployment) DefinitionFor(partition, function string) string {
	return indentedJSON(render(definition, struct {
		Options
		Partition, Function, PiecesLabel string
		TaskTimeout                      time.Duration
	}{d.Options, partition, function, piecesLabel, taskTimeout}))
}
