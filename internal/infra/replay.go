package infra

import "time"

// function is what differs between a deployment's functions. They have the same
// zip and the same environment.
type function struct {
	why, id, name, description string
	timeout                    time.Duration
	role                       sub
	logGroup                   string // its id in CloudFormation
	tfName, tfRole             string // Terraform's names: its own, and that of its role and its log group
}

func (d deployment) streamFunction() function {
	return function{why: whyFunction, id: "Function", name: d.functionName(), description: "dynamill for table " + d.Table,
		timeout: d.Timeout, role: "${role}", logGroup: "LogGroup", tfName: "dynamill", tfRole: "function"}
}

func (d deployment) replayFunction() function {
	return function{why: whyReplayFunction, id: "ReplayFunction", name: d.replayName(),
		description: "replays table " + d.Table + " with dynamill",
		timeout:     replayTimeout, role: "${replayRole}", logGroup: "ReplayLogGroup", tfName: "replay", tfRole: "replay"}
}

const (
	whyReplayLogs     = "The log of the function that replays."
	whyReplayRole     = "What a replay does to the tables, and nothing of the stream."
	whyReplayFunction = "The engine once more, for replays: with more time for an invocation, and apart from the stream's, whose " +
		"concurrency it leaves alone."
	whyMachineRole = "Calls that function, and starts an execution of its own for each piece."
	whyMachine     = "A replay: pieces of the table or of an export, many at once, until nothing is left (docs/replay.md)."
)

const (
	machineService = "states.amazonaws.com"
	lambdaService  = "lambda.amazonaws.com"
)

// cfnReplay is all that a replay needs, in CloudFormation.
func (d deployment) cfnReplay(sam bool) block {
	if !d.Replay {
		return nil
	}
	return block{
		d.cfnLogGroup(whyReplayLogs, "ReplayLogGroup", d.replayName()),
		cfnRole(whyReplayRole, "ReplayRole", lambdaService, d.replayStatements()),
		d.cfnFunction(sam, d.replayFunction()),
		cfnRole(whyMachineRole, "ReplayMachineRole", machineService, d.machineStatements()),
		resource(whyMachine, "ReplayMachine", "AWS::StepFunctions::StateMachine", block{
			{key: "StateMachineName", value: d.replayName()},
			{key: "StateMachineType", value: "STANDARD"},
			{key: "RoleArn", value: sub("${machineRole}")},
			{key: "DefinitionString", value: encoded{d.definition()}},
		}),
	}
}

func (d deployment) cfnReplayOutputs() block {
	if !d.Replay {
		return nil
	}
	return block{{key: "ReplayMachineArn", value: block{{key: "Value", value: sub("${machine}")}}}}
}

// tfReplay is all that a replay needs, in Terraform.
func (d deployment) tfReplay() block {
	if !d.Replay {
		return nil
	}
	resources := block{d.tfLogGroup(whyReplayLogs, "replay", d.replayName())}
	resources = append(resources, tfRole(whyReplayRole, "replay", lambdaService, d.replayStatements())...)
	resources = append(resources, d.tfFunction(d.replayFunction()))
	resources = append(resources, tfRole(whyMachineRole, "replay_machine", machineService, d.machineStatements())...)
	return append(resources, tf(whyMachine, "aws_sfn_state_machine", "replay", nested{
		{key: "name", value: d.replayName()},
		{key: "type", value: "STANDARD"},
		{key: "role_arn", value: sub("${machineRole}")},
		{key: "definition", value: encoded{d.definition()}},
		{key: "depends_on", value: raw("[aws_iam_role_policy.replay_machine]")},
	}))
}

func (d deployment) tfReplayOutputs() block {
	if !d.Replay {
		return nil
	}
	return block{{key: `output "replay_machine_arn"`, value: nested{{key: "value", value: sub("${machine}")}}}}
}
