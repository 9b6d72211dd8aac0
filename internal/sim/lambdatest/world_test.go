package lambdatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/proof/population"
	"github.com/dynamill/dynamill/internal/sim/emulator"
)

// fromEnvironment returns a whole number that the environment may set.
func fromEnvironment(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

var binaryFolder string // removed when all tests have ended

// binary is the executable that is deployed.
var binary = sync.OnceValues(func() (path string, err error) {
	if binaryFolder, err = os.MkdirTemp("", "lambdatest"); err != nil {
		return "", err
	}
	path = filepath.Join(binaryFolder, "bootstrap")
	build := exec.Command("go", "build", "-o", path, "github.com/dynamill/dynamill/cmd/dynamill-lambda")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the function: %w\n%s", err, out)
	}
	return path, nil
})

// world is a table of a population on a real endpoint, and the deployed function.
type world struct {
	*testing.T
	*population.Population
	ctx       context.Context
	server    emulator.Endpoint
	client    *dynamodb.Client
	streams   *dynamodbstreams.Client
	table     string
	rulesFile string
	bootstrap string
}

func newWorld(ctx context.Context, t *testing.T, server emulator.Endpoint, p *population.Population) *world {
	t.Helper()
	cfg := server.Config(t)
	w := &world{
		T: t, Population: p, ctx: ctx, server: server,
		client: dynamodb.NewFromConfig(cfg), streams: dynamodbstreams.NewFromConfig(cfg),
		table: fmt.Sprintf("lambdatest-%d", time.Now().UnixNano()), rulesFile: filepath.Join(t.TempDir(), "dynamill.yaml"),
	}
	var err error
	w.bootstrap, err = binary()
	w.must(err)
	w.must(os.WriteFile(w.rulesFile, []byte(p.File), 0o600))
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) stateTable() string { return w.table + "-state" }

func (w *world) createTable() {
	w.Helper()
	in := &dynamodb.CreateTableInput{TableName: &w.table, BillingMode: types.BillingModePayPerRequest}
	for _, key := range []struct {
		name string
		role types.KeyType
		kind change.Kind
	}{{w.Set.Table.PartitionKey, types.KeyTypeHash, w.PartitionKind}, {w.Set.Table.SortKey, types.KeyTypeRange, w.SortKind}} {
		if key.name != "" {
			in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: &key.name, KeyType: key.role})
			in.AttributeDefinitions = append(in.AttributeDefinitions,
				types.AttributeDefinition{AttributeName: &key.name, AttributeType: types.ScalarAttributeType(key.kind.String())})
		}
	}
	_, err := w.client.CreateTable(w.ctx, in)
	w.must(err)
	w.Cleanup(func() {
		for _, table := range []string{w.table, w.stateTable()} {
			_, err := w.client.DeleteTable(context.WithoutCancel(w.ctx), &dynamodb.DeleteTableInput{TableName: &table})
			var missing *types.ResourceNotFoundException
			if err != nil && !errors.As(err, &missing) {
				w.Errorf("deleting table %s: %v", table, err)
			}
		}
	})
}

// enableStream returns the stream's ARN.
func (w *world) enableStream() string {
	w.Helper()
	out, err := w.client.UpdateTable(w.ctx, &dynamodb.UpdateTableInput{TableName: &w.table, StreamSpecification: &types.StreamSpecification{
		StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages,
	}})
	w.must(err)
	return aws.ToString(out.TableDescription.LatestStreamArn)
}

// operator is an engine as `dynamill run` has it, with fan-outs that soon become
// tasks: what it leaves is for the function to do.
func (w *world) operator() (*projections.Engine, error) {
	return projections.Open(w.ctx, projections.Config{
		Client: w.client, Table: w.table, StateTable: w.stateTable(), Rules: w.Set, FanOutMax: 1,
	})
}

// command runs the function as it is deployed.
func (w *world) command() *exec.Cmd {
	cmd := exec.Command(w.bootstrap)
	cmd.Env = w.server.Environ("DYNAMILL_TABLE="+w.table, "DYNAMILL_STATE_TABLE="+w.stateTable(), "DYNAMILL_RULES="+w.rulesFile,
		"DYNAMILL_ENDPOINT="+w.server.URL)
	return cmd
}

// scan returns everything in a table.
func (w *world) scan(table string) ([]change.Item, error) {
	var found []change.Item
	pages := dynamodb.NewScanPaginator(w.client, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(w.ctx)
		if err != nil {
			return nil, err
		}
		for _, raw := range page.Items {
			found = append(found, attributes.ItemFromTable(raw))
		}
	}
	return found, nil
}
