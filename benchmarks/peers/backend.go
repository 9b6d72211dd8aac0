package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

const (
	backendSimulator = "simulator"
	backendDynoxide  = "dynoxide"
	backendLocal     = "dynamodb-local"

	applicationKey = "application"
	contenderKey   = "contender"

	tableCreateMax = time.Minute
)

// variables name the endpoints that scripts/with-endpoints starts.
var variables = map[string]string{backendDynoxide: "DYNAMILL_EXACT_ENDPOINT", backendLocal: "DYNAMILL_TEST_ENDPOINT"}

// world is a DynamoDB for one run, with one table.
type world struct {
	application, contender endpoint
	client                 *dynamodb.Client // of the application
	table, streamARN       string
	simulated              bool
	close                  func() error
}

// newWorld makes a simulator of its own, or new tables at an endpoint that runs already.
func newWorld(ctx context.Context, backend string, how simulation) (*world, error) {
	w := &world{table: "peers-" + strings.ToLower(rand.Text()), simulated: backend == backendSimulator}
	if w.simulated {
		url, end, err := startSimulator(ctx, how)
		if err != nil {
			return nil, err
		}
		w.application, w.contender, w.close = endpoint{url, applicationKey}, endpoint{url, contenderKey}, end
	} else {
		url := os.Getenv(variables[backend])
		if url == "" {
			return nil, fmt.Errorf("%s names no %s: start this by scripts/with-endpoints", variables[backend], backend)
		}
		w.application = endpoint{url, "peers" + rand.Text()} // DynamoDB Local has a database for each key
		w.contender, w.close = w.application, w.removeTables
	}
	w.client = dynamodb.NewFromConfig(w.application.config())
	var err error
	if w.streamARN, err = w.createTable(ctx, w.table, true); err == nil {
		_, err = w.createTable(ctx, w.table+claimsSuffix, false)
	}
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

// startSimulator starts a process and returns its address and what ends it.
func startSimulator(ctx context.Context, how simulation) (url string, end func() error, err error) {
	own, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	process := exec.CommandContext(ctx, own, modeSimulator)
	process.Stderr = os.Stderr
	in, err := process.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := process.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := process.Start(); err != nil {
		return "", nil, fmt.Errorf("starting the simulator: %w", err)
	}
	end = func() error {
		_ = in.Close()
		return process.Wait()
	}
	err = json.NewEncoder(in).Encode(how)
	if err == nil {
		err = readLine(bufio.NewReader(out), &url)
	}
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("the simulator does not start: %w", err), end())
	}
	return url, end, nil
}

func (w *world) createTable(ctx context.Context, name string, streaming bool) (streamARN string, err error) {
	in := &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String(partitionKey), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String(sortKey), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String(partitionKey), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String(sortKey), KeyType: types.KeyTypeRange},
		},
	}
	if streaming {
		in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages}
	}
	made, err := w.client.CreateTable(ctx, in)
	if err != nil {
		return "", fmt.Errorf("creating table %s: %w", name, err)
	}
	exists := dynamodb.NewTableExistsWaiter(w.client)
	if err := exists.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &name}, tableCreateMax); err != nil {
		return "", fmt.Errorf("waiting for table %s: %w", name, err)
	}
	return aws.ToString(made.TableDescription.LatestStreamArn), nil
}

// removeTables deletes all tables of this run at an endpoint that stays.
func (w *world) removeTables() error {
	ctx, cancel := context.WithTimeout(context.Background(), tableCreateMax)
	defer cancel()
	var problems []error
	for _, suffix := range []string{"", claimsSuffix, "-dynamill", leaseSuffix} {
		_, err := w.client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String(w.table + suffix)})
		var missing *types.ResourceNotFoundException
		if err != nil && !errors.As(err, &missing) {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// put writes items of the application.
func (w *world) put(ctx context.Context, items []attributes) error {
	var requests []types.WriteRequest
	for _, item := range items {
		requests = append(requests, types.WriteRequest{PutRequest: &types.PutRequest{Item: item}})
	}
	if err := writeItems(ctx, w.client, w.table, requests); err != nil {
		return fmt.Errorf("writing the application's items: %w", err)
	}
	return nil
}

// wrong returns how many derived values are not as they should be.
func (w *world) wrong(ctx context.Context, load workload) (int, error) {
	right := 0
	pages := dynamodb.NewScanPaginator(w.client, &dynamodb.ScanInput{TableName: &w.table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return 0, fmt.Errorf("reading what was derived: %w", err)
		}
		for _, item := range page.Items {
			want, ok := load.wanted[plain(item[partitionKey])+keySeparator+plain(item[sortKey])]
			if ok && plain(item[load.attribute]) == want {
				right++
			}
		}
	}
	return len(load.wanted) - right, nil
}

func plain(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	}
	return ""
}

// billed returns the units that the simulator has counted up to now, refused writes included, without the lease table's.
func (w *world) billed(ctx context.Context) (write, read float64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.application.URL+usagePath, nil)
	if err != nil {
		return 0, 0, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	var used dynamosim.Usage
	if err := json.NewDecoder(answer.Body).Decode(&used); err != nil {
		return 0, 0, fmt.Errorf("reading what the simulator billed: %w", err)
	}
	lease := used.Tables[w.table+leaseSuffix]
	return used.WriteUnits - lease.WriteUnits, used.ReadUnits - lease.ReadUnits, nil
}
