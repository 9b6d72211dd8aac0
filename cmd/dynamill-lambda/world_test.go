package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/sim/emulator"
)

// groupRules are those of every test here.
const groupRules = `version: 1
table: { keys: [pk, sk] }
entities:
  Group:  { key: { pk: "GROUP#${groupId}", sk: "METADATA" } }
  Member: { key: { pk: "GROUP#${groupId}", sk: "USER#${userId}" } }
rules:
  member-count: { count: Member, as: Group.memberCount }
`

// bootstrap is the built function; TestMain takes it away.
var bootstrap struct {
	once   sync.Once
	folder string
	err    error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if bootstrap.folder != "" {
		_ = os.RemoveAll(bootstrap.folder)
	}
	os.Exit(code)
}

// built returns the path of the function, built as `make lambda` does.
func built(t testing.TB) string {
	t.Helper()
	b := &bootstrap
	b.once.Do(func() {
		if b.folder, b.err = os.MkdirTemp("", "bootstrap"); b.err != nil {
			return
		}
		cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-tags", "lambda.norpc", "-ldflags", "-s -w -buildid=", "-o",
			b.folder+"/bootstrap", ".")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			b.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if b.err != nil {
		t.Fatal(b.err)
	}
	return filepath.Join(b.folder, "bootstrap")
}

// world is a table of its own on a real endpoint.
type world struct {
	testing.TB
	client          *dynamodb.Client
	endpoint, table string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	server := emulator.Local(t)
	server.Setenv(t)
	w := &world{
		TB: t, endpoint: server.URL,
		client: dynamodb.NewFromConfig(server.Config(t)),
		table:  fmt.Sprintf("lambda-%s-%d", strings.ToLower(t.Name()), time.Now().UnixNano()),
	}
	key := func(name string, role ddb.KeyType) ddb.KeySchemaElement {
		return ddb.KeySchemaElement{AttributeName: &name, KeyType: role}
	}
	text := func(name string) ddb.AttributeDefinition {
		return ddb.AttributeDefinition{AttributeName: &name, AttributeType: ddb.ScalarAttributeTypeS}
	}
	_, err := w.client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &w.table, BillingMode: ddb.BillingModePayPerRequest,
		KeySchema:            []ddb.KeySchemaElement{key("pk", ddb.KeyTypeHash), key("sk", ddb.KeyTypeRange)},
		AttributeDefinitions: []ddb.AttributeDefinition{text("pk"), text("sk")},
	})
	w.must(err)
	t.Cleanup(func() {
		for _, name := range []string{w.table, w.table + "-dynamill"} {
			_, _ = w.client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name})
		}
	})
	w.must(dynamodb.NewTableExistsWaiter(w.client).Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: &w.table}, time.Minute))
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// engine opens an engine beside the function, and seeds what is new.
func (w *world) engine(text string) *projections.Engine {
	w.Helper()
	set, err := rules.Load("dynamill.yaml", []byte(text), projections.Kinds)
	w.must(err)
	engine, err := projections.Open(w.Context(), projections.Config{Client: w.client, Table: w.table, Rules: set})
	w.must(err)
	w.must(engine.Seed(w.Context(), nil))
	return engine
}

func keyOf(pk, sk string) map[string]ddb.AttributeValue {
	return map[string]ddb.AttributeValue{"pk": &ddb.AttributeValueMemberS{Value: pk}, "sk": &ddb.AttributeValueMemberS{Value: sk}}
}

func (w *world) put(pk, sk string) {
	w.Helper()
	_, err := w.client.PutItem(w.Context(), &dynamodb.PutItemInput{TableName: &w.table, Item: keyOf(pk, sk)})
	w.must(err)
}

// count is what a group shows: "" for nothing.
func (w *world) count(group string) string {
	w.Helper()
	out, err := w.client.GetItem(w.Context(), &dynamodb.GetItemInput{
		TableName: &w.table, Key: keyOf("GROUP#"+group, "METADATA"), ConsistentRead: aws.Bool(true),
	})
	w.must(err)
	if n, ok := out.Item["memberCount"].(*ddb.AttributeValueMemberN); ok {
		return n.Value
	}
	return ""
}

// joined is the JSON of the stream's record of a new member.
func joined(group, user, sequence string) string {
	return fmt.Sprintf(`{"eventID":"e%[3]s","eventName":"INSERT","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"us-east-1",
"dynamodb":{"ApproximateCreationDateTime":1.7935272E9,"Keys":{"pk":{"S":"GROUP#%[1]s"},"sk":{"S":"USER#%[2]s"}},
"NewImage":{"pk":{"S":"GROUP#%[1]s"},"sk":{"S":"USER#%[2]s"},"note":{"S":"x"}},"SequenceNumber":"%[3]s","StreamViewType":"NEW_AND_OLD_IMAGES"},
"eventSourceARN":"arn:aws:dynamodb:us-east-1:000000000000:table/app/stream/2026-01-01T00:00:00.000"}`, group, user, sequence)
}

// malformed has a type of value that DynamoDB does not know.
func malformed(record string) string { return strings.Replace(record, `"note":{"S"`, `"note":{"X"`, 1) }

// event is one of the world's own table.
func (w *world) event(records ...string) string {
	return strings.ReplaceAll(event(records...), ":table/app/", ":table/"+w.table+"/")
}

func event(records ...string) string { return `{"Records":[` + strings.Join(records, ",") + `]}` }

// runtimeAPI is Lambda's side of the runtime API (Lambda developer guide, "Using
// the Lambda runtime API"), as far as one invocation after the other needs it.
type runtimeAPI struct {
	server   *httptest.Server
	payloads chan string
	asked    chan struct{} // an environment is ready for a payload
	answers  chan answer
}

type answer struct{ path, errorType, body string }

func newRuntimeAPI(t testing.TB) *runtimeAPI {
	api := &runtimeAPI{payloads: make(chan string), asked: make(chan struct{}, 100), answers: make(chan answer, 100)}
	id := 0
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", func(w http.ResponseWriter, r *http.Request) {
		api.asked <- struct{}{}
		select {
		case payload := <-api.payloads:
			id++ // one environment asks for one payload at a time
			w.Header().Set("Lambda-Runtime-Aws-Request-Id", "request-"+strconv.Itoa(id))
			w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(time.Minute).UnixMilli(), 10))
			w.Header().Set("Lambda-Runtime-Trace-Id", "trace-"+strconv.Itoa(id))
			_, _ = io.WriteString(w, payload)
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("POST /2018-06-01/runtime/", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusAccepted)
		api.answers <- answer{strings.TrimPrefix(r.URL.Path, "/2018-06-01/runtime/"), r.Header.Get("Lambda-Runtime-Function-Error-Type"),
			string(body)}
	})
	api.server = httptest.NewServer(mux)
	t.Cleanup(api.server.Close)
	return api
}

// process is a running function.
type process struct {
	testing.TB
	api            *runtimeAPI
	cmd            *exec.Cmd
	stdout, stderr buffer
	ended          chan error
}

// buffer can be read while a process writes into it.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// launch starts the built function with these variables, and no others but those of AWS.
func launch(t testing.TB, variables ...string) *process {
	t.Helper()
	p := &process{TB: t, api: newRuntimeAPI(t), ended: make(chan error, 1)}
	p.cmd = exec.Command(built(t))
	for _, v := range os.Environ() {
		if strings.HasPrefix(v, "AWS_") {
			p.cmd.Env = append(p.cmd.Env, v)
		}
	}
	p.cmd.Env = append(p.cmd.Env, "AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(p.api.server.URL, "http://"),
		"AWS_LAMBDA_LOG_STREAM_NAME=2026/01/01/[$LATEST]0123456789abcdef")
	p.cmd.Env = append(p.cmd.Env, variables...)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	t.Cleanup(func() {
		if err := p.cmd.Process.Kill(); err == nil {
			<-p.ended
		} else if !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
	})
	return p
}

const answerTimeout = 30 * time.Second

// ready waits until the environment asks for its next payload.
// prints waits until the process has printed a text: what it writes comes by a
// pipe, and may come after its next request.
func (p *process) prints(b *buffer, text string, times int) {
	p.Helper()
	for deadline := time.Now().Add(10 * time.Second); strings.Count(b.String(), text) < times; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.Fatalf("%q is not there %d times:\n%s", text, times, b.String())
		}
	}
}

func (p *process) ready() {
	p.Helper()
	select {
	case <-p.api.asked:
	case err := <-p.ended:
		p.Fatalf("the function ended: %v\n%s", err, p.stderr.String())
	case <-time.After(answerTimeout):
		p.Fatalf("the function did not get ready\n%s", p.stderr.String())
	}
}

// invoke has the function answer a payload.
func (p *process) invoke(payload string) answer {
	p.Helper()
	p.ready()
	p.api.payloads <- payload
	return p.answer()
}

func (p *process) answer() answer {
	p.Helper()
	select {
	case a := <-p.api.answers:
		return a
	case <-time.After(answerTimeout):
		p.Fatalf("no answer\n%s", p.stderr.String())
		return answer{}
	}
}
