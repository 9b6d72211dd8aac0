package dynamill

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/projections"
	compiled "github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/rules"
)

// bench is a function on a simulated table "app", seeded, with one group "g".
type bench struct {
	testing.TB
	sim  *dynamosim.Sim
	f    *Handler
	text string          // the function's rule file
	on   func(op string) // told of each operation; nil: nothing is told

	log, metrics strings.Builder
}

func newBench(t testing.TB, text string, change ...func(*HandlerConfig)) *bench {
	t.Helper()
	b := &bench{TB: t, text: text}
	b.sim = dynamosim.New(dynamosim.Options{Before: func(op string, _ any) error {
		if b.on != nil {
			b.on(op)
		}
		return nil
	}})
	p := &police{TB: t, sim: b.sim}
	p.createTable("app", "pk", "sk")
	b.put("GROUP#g", "METADATA")
	set, err := compiled.Load("dynamill.yaml", []byte(text), projections.Kinds)
	b.must(err)
	engine, err := projections.Open(t.Context(), projections.Config{Client: b.sim, Table: "app", Rules: set})
	b.must(err)
	b.must(engine.Seed(t.Context(), nil))
	cfg := HandlerConfig{Tables: b.sim, Table: "app", Logger: slog.New(slog.NewJSONHandler(&b.log, nil)), Metrics: &b.metrics}
	cfg.ReadRules = func(context.Context) (*rules.Set, error) {
		return rules.Load("dynamill.yaml", []byte(b.text))
	}
	for _, c := range change {
		c(&cfg)
	}
	b.f, err = NewHandler(t.Context(), cfg)
	b.must(err)
	return b
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) put(pk, sk string, attributes ...string) {
	b.Helper()
	item := keyOf(pk, sk)
	for i := 0; i < len(attributes); i += 2 {
		item[attributes[i]] = &ddb.AttributeValueMemberS{Value: attributes[i+1]}
	}
	_, err := b.sim.PutItem(b.Context(), &dynamodb.PutItemInput{TableName: aws.String("app"), Item: item})
	b.must(err)
}

// item is an item of the group's partition.
func (b *bench) item(sk string) map[string]ddb.AttributeValue {
	b.Helper()
	out, err := b.sim.GetItem(b.Context(), &dynamodb.GetItemInput{TableName: aws.String("app"), Key: keyOf("GROUP#g", sk),
		ConsistentRead: aws.Bool(true)})
	b.must(err)
	return out.Item
}

func (b *bench) count() string {
	b.Helper()
	if n, ok := b.item("METADATA")["memberCount"].(*ddb.AttributeValueMemberN); ok {
		return n.Value
	}
	return ""
}

// join has so many members join the group, and returns the stream's records of it.
func (b *bench) join(members int) (records []string) {
	b.Helper()
	for i := range members {
		user := strconv.Itoa(i)
		b.put("GROUP#g", "USER#"+user)
		records = append(records, joined("g", user, strconv.Itoa(1000+i)))
	}
	return records
}

func TestTheStartOfABatchIsDoneWhenTimeRunsOut(t *testing.T) {
	const members = 300
	operations := 0 // of an invocation that has time
	whole := newBench(t, groupRules)
	records := whole.join(members)
	var n atomic.Int64
	whole.on = func(string) { n.Add(1) }
	if answer, err := whole.f.Invoke(t.Context(), []byte(event(records...))); err != nil || string(answer) != `{"batchItemFailures":[]}` {
		t.Fatalf("answer %s, %v", answer, err)
	}
	if operations = int(n.Load()); whole.count() != strconv.Itoa(members) {
		t.Fatalf("the group shows %q members", whole.count())
	}
	b := newBench(t, groupRules)
	records = b.join(members)
	ctx, cancel := context.WithCancelCause(t.Context())
	n.Store(0)
	b.on = func(string) {
		if n.Add(1) == int64(operations/2) {
			cancel(errors.New("time is up"))
		}
	}
	answer, err := b.f.Invoke(ctx, []byte(event(records...)))
	b.on = nil
	named := regexp.MustCompile(`^{"batchItemFailures":\[{"itemIdentifier":"(\d+)"}\]}$`).FindSubmatch(answer)
	if err != nil || named == nil {
		t.Fatalf("answer %s, %v", answer, err)
	}
	first, _ := strconv.Atoi(string(named[1]))
	if first -= 1000; first <= 0 || first >= members {
		t.Errorf("record %d of %d is named the first that is not done", first, members)
	}
	// What is not named is done indeed.
	if answer, err := b.f.Invoke(t.Context(), []byte(event(records[first:]...))); err != nil || string(answer) != `{"batchItemFailures":[]}` {
		t.Errorf("answer %s, %v", answer, err)
	}
	if b.count() != strconv.Itoa(members) {
		t.Errorf("the group shows %q members", b.count())
	}
}

const titleRules = `version: 1
table: { keys: [pk, sk] }
entities:
  Group:  { key: { pk: "GROUP#${groupId}", sk: "METADATA" } }
  Member: { key: { pk: "GROUP#${groupId}", sk: "USER#${userId}" } }
rules:
  title: { copy: title, from: Group, to: Member }
`

// retitled is a record of the stream: a group has another title.
func retitled(group string, sequence int) string {
	key := fmt.Sprintf(`"pk":{"S":"GROUP#%s"},"sk":{"S":"METADATA"}`, group)
	return fmt.Sprintf(`{"eventName":"MODIFY","eventSource":"aws:dynamodb","dynamodb":{"Keys":{%s},"OldImage":{%s},
"NewImage":{%s,"title":{"S":"G"}},"SequenceNumber":"%d"},
"eventSourceARN":"arn:aws:dynamodb:us-east-1:000000000000:table/app/stream/2026-01-01T00:00:00.000"}`, key, key, key, sequence)
}

// The records of a piece that are done when time runs out stay done: otherwise a batch of large fan-outs would begin anew for ever.
func TestRecordsBeforeAnInterruptedOneStayDone(t *testing.T) {
	const groups = 4
	var n, stopAt atomic.Int64
	begin := func() (*bench, []byte) {
		b := newBench(t, titleRules)
		var records []string
		for g := range groups {
			name := strconv.Itoa(g)
			b.put("GROUP#"+name, "METADATA", "title", "G")
			for user := range 3 {
				b.put("GROUP#"+name, fmt.Sprint("USER#", user))
			}
			records = append(records, retitled(name, 100+g))
		}
		n.Store(0)
		return b, []byte(event(records...))
	}
	b, payload := begin()
	b.on = func(string) { n.Add(1) }
	if answer, err := b.f.Invoke(t.Context(), payload); err != nil || string(answer) != `{"batchItemFailures":[]}` {
		t.Fatalf("answer %s, %v", answer, err)
	}
	operations, advanced := n.Load(), 0
	for stopAt.Store(1); stopAt.Load() < operations; stopAt.Add(1) {
		b, payload := begin()
		ctx, cancel := context.WithCancelCause(t.Context())
		b.on = func(string) {
			if n.Add(1) == stopAt.Load() {
				cancel(errors.New("time is up"))
			}
		}
		if answer, err := b.f.Invoke(ctx, payload); err == nil && !strings.Contains(string(answer), `"100"`) {
			advanced++
		}
	}
	if advanced == 0 {
		t.Errorf("stopped at any of %d operations, no record is done", operations)
	}
}

// A fan-out over its bound leaves a task.
func TestTheBoundOfAFanOutIsTheEngines(t *testing.T) {
	for bound, pieces := range map[int]string{0: `{"pieces":0,"done":true}`, 2: ""} {
		b := newBench(t, titleRules, func(c *HandlerConfig) { c.FanOutMax = bound })
		b.join(5)
		b.put("GROUP#g", "METADATA", "title", "G")
		if answer, err := b.f.Invoke(t.Context(), []byte(event(retitled("g", 1)))); err != nil || string(answer) != `{"batchItemFailures":[]}` {
			t.Errorf("answer %s, %v", answer, err)
		}
		answer, err := b.f.Invoke(t.Context(), []byte(`{"dynamill":"tasks"}`))
		if err != nil || pieces != "" && string(answer) != pieces || pieces == "" && strings.Contains(string(answer), `"pieces":0`) {
			t.Errorf("bound %d: answer %s, %v to tasks", bound, answer, err)
		}
		for i := range 5 {
			if title, ok := b.item("USER#" + strconv.Itoa(i))["title"].(*ddb.AttributeValueMemberS); !ok || title.Value != "G" {
				t.Errorf("bound %d: member %d has title %v", bound, i, title)
			}
		}
	}
}

// The engine's errors name the command's flags, which a program does not have.
func TestRemediesNameTheFieldsOfTheConfig(t *testing.T) {
	b := newBench(t, groupRules)
	for table, want := range map[string]string{"none": "Config.Table, Config.AWS.Region and Config.AWS.BaseEndpoint",
		"other": "Config.StateTable"} {
		if table == "other" {
			(&police{TB: t, sim: b.sim}).createTable(table, "pk", "sk")
		}
		cfg := b.f.cfg
		cfg.Table, cfg.StateTable = table, "app-dynamill"
		_, err := NewHandler(t.Context(), cfg)
		var setup *projections.SetupError
		if !errors.As(err, &setup) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "--") {
			t.Errorf("table %s: error %v, want one that says %q", table, err, want)
		}
	}
	flags := 0
	for folder, remedies := range map[string]*regexp.Regexp{ // elsewhere than in a remedy, following names flags of other commands
		"projections": regexp.MustCompile(`"[^"\n]*--[a-z][^"\n]*"`), "internal/following": regexp.MustCompile(`setup\("[^"\n]*--[a-z][^"\n]*"`),
	} {
		files, err := filepath.Glob(folder + "/*.go")
		b.must(err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			src, err := os.ReadFile(file)
			b.must(err)
			for _, text := range remedies.FindAllString(string(src), -1) {
				flags++
				if here := asFields.Replace(text); strings.Contains(here, "--") {
					t.Errorf("%s: %s becomes %s", file, text, here)
				}
			}
		}
	}
	if flags == 0 {
		t.Error("no remedy names a flag: this test and asFields are needed no more")
	}
}

// Rules of a parameter may change under an environment that Lambda keeps.
func TestNewerRulesAreTakenUp(t *testing.T) {
	b := newBench(t, groupRules)
	records := b.join(1)
	payload := []byte(event(records...))
	first, err := b.f.ready(t.Context())
	b.must(err)
	newer := groupRules + "  members: { count: Member, as: Group.members }\n"
	set, err := compiled.Load("dynamill.yaml", []byte(newer), projections.Kinds)
	b.must(err)
	engine, err := projections.Open(t.Context(), projections.Config{Client: b.sim, Table: "app", Rules: set})
	b.must(err)
	b.must(engine.Seed(t.Context(), nil))
	answered, err := b.f.Invoke(t.Context(), payload)
	if !errors.Is(err, projections.ErrEpochMoved) {
		t.Errorf("answer %s, %v under old rules", answered, err)
	}
	if _, err = b.f.Invoke(t.Context(), payload); err == nil || !strings.Contains(err.Error(), "members") {
		t.Errorf("error %v, want that a rule in force is missing", err)
	}
	b.text = newer
	answered, err = b.f.Invoke(t.Context(), payload)
	if err != nil || string(answered) != `{"batchItemFailures":[]}` {
		t.Errorf("answer %s, %v under new rules", answered, err)
	}
	if second, err := b.f.ready(t.Context()); err != nil || second == first {
		t.Errorf("the engine is the old one, or %v", err)
	}
	if b.count() != "1" {
		t.Errorf("the group shows %q members, want 1", b.count())
	}
}
