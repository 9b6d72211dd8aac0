package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/follow"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/following"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/proof/oracle"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/sim/emulator"
)

const (
	stampPrefix = "_dm"
	batchMax    = 25 // items in one BatchWriteItem
)

// communityRules are the rules of the end-to-end tests: every kind but sum, on
// items as the seeds' first model has them.
const communityRules = `version: 1
table: { keys: [pk, sk] }
entities:
  User:       { key: { pk: "USER#${userId}",   sk: "PROFILE" } }
  Post:       { key: { pk: "POST#${postId}",   sk: "METADATA" } }
  Comment:    { key: { pk: "POST#${postId}",   sk: "COMMENT#${createdAt}#${commentId}" } }
  Group:      { key: { pk: "GROUP#${groupId}", sk: "METADATA" } }
  Membership: { key: { pk: "USER#${userId}",   sk: "GROUP#${groupId}" } }
  Member:     { key: { pk: "GROUP#${groupId}", sk: "USER#${userId}" } }
rules:
  comment-author: { copy: [name as userName, avatar as userAvatar], from: User, to: Comment, by: userId }
  member-list:    { mirror: Membership, as: Member, attributes: [role, joinedAt] }
  member-name:    { copy: name as userName,  from: User,  to: Member }
  group-name:     { copy: name as groupName, from: Group, to: Membership }
  member-count:   { count: Membership, as: Group.memberCount, where: role != "banned", write_shards: 4 }
  comment-count:  { count: Comment, as: Post.commentCount }
  user-comments:  { count: Comment, as: User.commentCount, by: userId }
`

// world is a table of its own, and the command on it.
type world struct {
	t        *testing.T
	client   *dynamodb.Client
	server   emulator.Endpoint
	endpoint string // URL of the server, or of what stands before it
	table    string
	rules    string // file
	set      *rules.Set
}

// newWorld makes an empty table at a simulator of its own, with a stream of the given view type unless that is "".
func newWorld(t *testing.T, view types.StreamViewType) *world {
	t.Helper()
	return newWorldAt(t, emulator.Simulated(t), view)
}

// newLocalWorld is newWorld at DynamoDB Local. It costs the machine several times as much,
// so it is for tests of the whole way of a change and of what the simulator does not have.
func newLocalWorld(t *testing.T, view types.StreamViewType) *world {
	t.Helper()
	return newWorldAt(t, emulator.Local(t), view)
}

func newWorldAt(t *testing.T, server emulator.Endpoint, view types.StreamViewType) *world {
	t.Helper()
	w := newEmptyWorld(t, server)
	w.useRules(communityRules)
	w.createTable(view, change.KindString, change.KindString)
	return w
}

// newEmptyWorld names a table that is not there yet.
func newEmptyWorld(t *testing.T, server emulator.Endpoint) *world {
	t.Helper()
	return &world{
		t: t, server: server, endpoint: server.URL,
		table:  fmt.Sprintf("e2e-%s-%d", strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-")), time.Now().UnixNano()),
		rules:  filepath.Join(t.TempDir(), "dynamill.yaml"),
		client: dynamodb.NewFromConfig(server.Config(t)),
	}
}

// createTable makes the table that the rules are for, and sees to its end.
// partition and sort are the types of its keys.
func (w *world) createTable(view types.StreamViewType, partition, sort change.Kind) {
	w.t.Helper()
	in := &dynamodb.CreateTableInput{TableName: &w.table, BillingMode: types.BillingModePayPerRequest}
	addKey := func(name string, role types.KeyType, kind change.Kind) {
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: &name, KeyType: role})
		in.AttributeDefinitions = append(in.AttributeDefinitions,
			types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeType(kind.String())})
	}
	addKey(w.set.Table.PartitionKey, types.KeyTypeHash, partition)
	if w.set.Table.SortKey != "" {
		addKey(w.set.Table.SortKey, types.KeyTypeRange, sort)
	}
	if view != "" {
		in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: view}
	}
	_, err := w.client.CreateTable(w.t.Context(), in)
	w.must(err)
	w.deleteAfterwards(w.table, w.table+following.StateSuffix, w.leaseTableName())
}

// deleteAfterwards deletes tables when the test ends, if they are there by then.
func (w *world) deleteAfterwards(tables ...string) {
	w.t.Cleanup(func() {
		for _, table := range tables {
			_, err := w.client.DeleteTable(context.WithoutCancel(w.t.Context()), &dynamodb.DeleteTableInput{TableName: &table})
			var missing *types.ResourceNotFoundException
			if err != nil && !errors.As(err, &missing) {
				w.t.Errorf("deleting table %s: %v", table, err)
			}
		}
	})
}

// leaseTableName names the lease table beside the default state table.
func (w *world) leaseTableName() string {
	return w.table + following.StateSuffix + following.LeaseSuffix
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) useRules(src string) {
	w.t.Helper()
	w.must(os.WriteFile(w.rules, []byte(src), 0o600))
	set, err := rules.Load(w.rules, []byte(src), projections.Kinds)
	w.must(err)
	w.set = set
}

func (w *world) enableStream() {
	w.t.Helper()
	_, err := w.client.UpdateTable(w.t.Context(), &dynamodb.UpdateTableInput{
		TableName: &w.table,
		StreamSpecification: &types.StreamSpecification{
			StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages,
		},
	})
	w.must(err)
}

// item makes an item of text attributes: key, then name and value in turn.
func item(pk, sk string, attributes ...string) change.Item {
	it := change.Item{"pk": change.String(pk), "sk": change.String(sk)}
	for i := 0; i < len(attributes); i += 2 {
		it[attributes[i]] = change.String(attributes[i+1])
	}
	return it
}

func keyOf(pk, sk string) map[string]types.AttributeValue {
	return attributes.ItemToTable(item(pk, sk))
}

// put writes whole items, over whatever was there.
func (w *world) put(items ...change.Item) {
	w.t.Helper()
	for batch := range slices.Chunk(items, batchMax) {
		requests := make([]types.WriteRequest, len(batch))
		for i, it := range batch {
			requests[i].PutRequest = &types.PutRequest{Item: attributes.ItemToTable(it)}
		}
		out, err := w.client.BatchWriteItem(w.t.Context(), &dynamodb.BatchWriteItemInput{
			RequestItems: map[string][]types.WriteRequest{w.table: requests},
		})
		w.must(err)
		if len(out.UnprocessedItems) > 0 {
			w.t.Fatalf("items were left unprocessed: %v", out.UnprocessedItems)
		}
	}
}

func (w *world) set1(pk, sk, name, value string) {
	w.t.Helper()
	_, err := w.client.UpdateItem(w.t.Context(), &dynamodb.UpdateItemInput{
		TableName: &w.table, Key: keyOf(pk, sk),
		UpdateExpression:          aws.String("SET #n = :v"),
		ExpressionAttributeNames:  map[string]string{"#n": name},
		ExpressionAttributeValues: map[string]types.AttributeValue{":v": &types.AttributeValueMemberS{Value: value}},
	})
	w.must(err)
}

func (w *world) delete(pk, sk string) {
	w.t.Helper()
	_, err := w.client.DeleteItem(w.t.Context(), &dynamodb.DeleteItemInput{TableName: &w.table, Key: keyOf(pk, sk)})
	w.must(err)
}

// items returns everything in the table by key.
func (w *world) items() map[string]change.Item {
	w.t.Helper()
	found := map[string]change.Item{}
	all, err := w.scan(w.table)
	w.must(err)
	for _, it := range all {
		found[it["pk"].Text()+" "+it["sk"].Text()] = it
	}
	return found
}

// scan returns everything in a table.
func (w *world) scan(table string) ([]change.Item, error) {
	var found []change.Item
	pages := dynamodb.NewScanPaginator(w.client, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(w.t.Context())
		if err != nil {
			return nil, err
		}
		for _, raw := range page.Items {
			found = append(found, attributes.ItemFromTable(raw))
		}
	}
	return found, nil
}

// expect checks attributes, given as "pk sk attribute": value; "" means absent.
func (w *world) expect(want map[string]string) {
	w.t.Helper()
	items := w.items()
	for place, value := range want {
		parts := strings.Split(place, " ")
		got := items[parts[0]+" "+parts[1]].Lookup(parts[2])
		if got.Text() != value || value == "" && got.Kind() != change.KindAbsent {
			w.t.Errorf("%s is %s %q, want %q", place, got.Kind(), got.Text(), value)
		}
	}
}

// expectTrue compares the whole table with what is computed from scratch.
func (w *world) expectTrue() {
	w.t.Helper()
	for i, difference := range oracle.Drift(w.set, slices.Collect(maps.Values(w.items()))) {
		w.t.Errorf("drift: %s", difference)
		if i == 20 {
			w.t.Fatal("and more")
		}
	}
}

func (w *world) args(args ...string) []string {
	return append(args, "--rules", w.rules, "--table", w.table, "--endpoint", w.endpoint)
}

// command is the command as a process of its own.
func (w *world) command(args ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
	return w.commandWith(w.args(args...))
}

// commandWith is the command with all of its arguments, and the credentials for the table.
func (w *world) commandWith(args []string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
	cmd, stdout, stderr := commandOf(args)
	cmd.Env = w.server.Environ()
	return cmd, stdout, stderr
}

// commandOf is the command with all of its arguments, not running yet.
func commandOf(args []string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
	cmd := exec.Command("dynamill", args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	return cmd, &stdout, &stderr
}

// call runs the command to its end.
func (w *world) call(args ...string) (code int, stdout, stderr string) {
	w.t.Helper()
	return w.callWith(w.args(args...))
}

// callWith runs the command with all of its arguments.
func (w *world) callWith(args []string) (code int, stdout, stderr string) {
	w.t.Helper()
	cmd, out, errs := w.commandWith(args)
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		w.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// drain runs `run --drain`, which must end well, and returns its result.
func (w *world) drain(flags ...string) follow.Drained {
	w.t.Helper()
	code, stdout, stderr := w.call(append([]string{"run", "--drain", "--drain-timeout", "4m", "--json"}, flags...)...)
	if code != ending.ExitDone {
		w.t.Fatalf("run --drain ended with exit code %d:\n%s", code, stderr)
	}
	var result follow.Drained
	w.must(json.Unmarshal([]byte(stdout), &result))
	return result
}
