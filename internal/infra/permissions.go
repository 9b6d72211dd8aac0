package infra

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/internal/rules"
)

// statement allows the function some actions on some resources.
type statement struct {
	ID        string
	Why       string
	Actions   []string
	Resources []sub
}

// statements are all that the function may do: what the engine calls for these
// rules, and what Lambda does in the function's name. README.md lists the former
// for `run`. Scanning, which seeding does, is not the function's business.
func statements(set *rules.Set, o Options) []statement {
	all := set.Rules
	if o.Former != nil {
		all = slices.Concat(all, o.Former.Rules)
	}
	table := []string{"dynamodb:DescribeTable", "dynamodb:BatchGetItem", "dynamodb:UpdateItem"}
	why := "What the rules read and write in your table."
	for _, need := range needsOf(all) {
		table, why = append(table, need.Action), why+" "+need.Why
	}
	return slices.Concat([]statement{
		{"Table", why, table, []sub{tableARN(o.Table)}},
		{"StateTable", "dynamill's own memory.",
			[]string{"dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive", "dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query",
				"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:ConditionCheckItem"},
			[]sub{tableARN(o.StateTable)}},
		{"Stream", "Lambda reads the stream in the function's name.",
			[]string{"dynamodb:DescribeStream", "dynamodb:GetShardIterator", "dynamodb:GetRecords"}, []sub{"${stream}"}},
		{"ListStreams", "Lambda lists streams when the mapping is made; AWS has no narrower resource for this action.",
			[]string{"dynamodb:ListStreams"}, []sub{"*"}},
		{"LateBatches", "Lambda writes late batches in the function's name; the function reads one that it is told of.",
			[]string{"s3:PutObject", "s3:GetObject"}, []sub{"${bucket}/*"}},
		{"LateBatchesBucket",
			"Lambda looks whether that bucket is there; and S3 tells the function of an object that is missing as such, not as denied.",
			[]string{"s3:ListBucket"}, []sub{"${bucket}"}},
		{"Logs", "The function's logs and, within them, its metrics.",
			[]string{"logs:CreateLogStream", "logs:PutLogEvents"}, []sub{"${logs}"}},
		{"Traces", "X-Ray; AWS has no narrower resource for these actions.",
			[]string{"xray:PutTraceSegments", "xray:PutTelemetryRecords"}, []sub{"*"}},
	}, o.ruleStatements())
}

// needsOf are what rules call on the user's table beside what all rules call, each action once.
func needsOf(all []*rules.Rule) []rules.Need {
	found := map[rules.Need]bool{}
	for _, r := range all {
		for _, need := range r.Form.Needs() {
			found[need] = true
		}
	}
	order := []string{"dynamodb:ConditionCheckItem", "dynamodb:Query", "dynamodb:DeleteItem"}
	return slices.SortedFunc(maps.Keys(found), func(a, b rules.Need) int {
		return cmp.Or(slices.Index(order, a.Action)-slices.Index(order, b.Action), cmp.Compare(a.Why, b.Why))
	})
}

// replayStatements are all that the function may do that replays: what the other
// one might ever do to the tables, and scan both.
func (d deployment) replayStatements() []statement {
	var replays []statement
	for _, s := range d.Statements {
		switch s.ID {
		case "Table":
			s.Why = "What rules of any kind read and write in your table: a replay takes back what former ones have written. Scan finds the items."
			s.Actions = []string{"dynamodb:DescribeTable", "dynamodb:BatchGetItem", "dynamodb:UpdateItem", "dynamodb:ConditionCheckItem",
				"dynamodb:Query",
				"dynamodb:DeleteItem", "dynamodb:Scan"}
		case "StateTable":
			s.Actions = append(slices.Clone(s.Actions), "dynamodb:Scan")
			s.Why += " Scan finds what items have left that are gone."
		case "Logs":
			s.Resources = []sub{"${replayLogs}"}
		case "Traces", "Rules":
		default: // the stream, and what Lambda gave up, are the other function's
			continue
		}
		replays = append(replays, s)
	}
	if d.ReplayExports == "" {
		return replays
	}
	bucket, prefix, _ := strings.Cut(strings.TrimPrefix(d.ReplayExports, objectPrefix), "/")
	if prefix != "" {
		prefix = strings.TrimSuffix(prefix, "/") + "/"
	}
	return append(replays,
		statement{"Exports", "Exports of the table, which replays read.", []string{"s3:GetObject"},
			[]sub{sub("arn:${partition}:s3:::" + bucket + "/" + prefix + "*")}},
		statement{"ExportsBucket", "Finds an export's files, and names those that are missing.", []string{"s3:ListBucket"},
			[]sub{sub("arn:${partition}:s3:::" + bucket)}})
}

// machineStatements are all that the state machine may do (Step Functions
// developer guide, "IAM policies for using Distributed Map states"): it starts the
// executions of its map's pieces by itself.
func (d deployment) machineStatements() []statement {
	arn := func(kind, rest string) sub {
		return sub("arn:${partition}:states:${region}:${account}:" + kind + ":" + d.ReplayName() + rest)
	}
	return []statement{
		{"Function", "The function that replays, and no other.", []string{"lambda:InvokeFunction"}, []sub{"${replayFunction}"}},
		{"Pieces", "Each piece is an execution of its own, of this same state machine.", []string{"states:StartExecution"},
			[]sub{arn("stateMachine", "")}},
		{"PiecesUnderWay", "Looks after these executions, and stops them when it is stopped.",
			[]string{"states:DescribeExecution", "states:StopExecution"},
			[]sub{arn("execution", ":*"), arn("execution", "/"+piecesLabel+":*")}},
	}
}

func tableARN(name string) sub {
	return sub("arn:${partition}:dynamodb:${region}:${account}:table/" + name)
}
