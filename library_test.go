package dynamill_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill"
	"github.com/dynamill/dynamill/dynamilltest"
	"github.com/dynamill/dynamill/internal/sim/emulator"
	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/rules"
)

// TestAProgramRenamesAParentWithManyChildren is the program of Example on DynamoDB Local. More
// children than a fan-out writes at once are enough; with DYNAMILL_SOAK they are 5,001, as in Example.
func TestAProgramRenamesAParentWithManyChildren(t *testing.T) {
	t.Parallel()
	members, table := 1201, "library"
	if os.Getenv("DYNAMILL_SOAK") != "" {
		members = 5001
	}
	cfg := emulator.Local(t).Config(t)
	client := dynamodb.NewFromConfig(cfg)
	key := func(name string, role types.KeyType) types.KeySchemaElement {
		return types.KeySchemaElement{AttributeName: &name, KeyType: role}
	}
	_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String(table), BillingMode: types.BillingModePayPerRequest,
		KeySchema: []types.KeySchemaElement{key("pk", types.KeyTypeHash), key("sk", types.KeyTypeRange)},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: "S"},
			{AttributeName: aws.String("sk"), AttributeType: "S"}},
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, suffix := range []string{"", "-dynamill", "-dynamill-leases"} {
			if _, err := client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: aws.String(table + suffix)}); err != nil {
				t.Error(err)
			}
		}
	})
	if named, err := rename(t.Context(), cfg, table, members); err != nil || named != members {
		t.Errorf("%d of %d members carry the new name, %v", named, members, err)
	}
}

func loaded(t *testing.T, file string) *rules.Set {
	t.Helper()
	set, err := rules.Load("dynamill.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func inMemory(t *testing.T) aws.Config {
	t.Helper()
	cfg, err := dynamilltest.New("app", "pk", "sk")
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func put(t *testing.T, cfg aws.Config, pk, sk, name string) {
	t.Helper()
	item := map[string]types.AttributeValue{"pk": text(pk), "sk": text(sk), "name": text(name)}
	if _, err := dynamodb.NewFromConfig(cfg).PutItem(t.Context(),
		&dynamodb.PutItemInput{TableName: aws.String("app"), Item: item}); err != nil {
		t.Fatal(err)
	}
}

func groupName(t *testing.T, cfg aws.Config, member string) string {
	t.Helper()
	out, err := dynamodb.NewFromConfig(cfg).GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String("app"), Key: map[string]types.AttributeValue{"pk": text("GROUP#g"), "sk": text(member)},
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		t.Fatal(err)
	}
	name, _ := out.Item["groupName"].(*types.AttributeValueMemberS)
	if name == nil {
		return ""
	}
	return name.Value
}

// Two processes follow one table; one is stopped, and the other goes on with what it read.
func TestFollowSharesATableAndStopsGracefully(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := inMemory(t)
		put(t, cfg, "GROUP#g", "METADATA", "Old")
		put(t, cfg, "GROUP#g", "USER#u", "U")
		follow := func(worker string) (stop context.CancelFunc, running func() *dynamill.Running, ended chan error) {
			ctx, stop := context.WithCancel(t.Context())
			ended, started := make(chan error, 1), make(chan *dynamill.Running, 1)
			go func() {
				ended <- dynamill.Follow(ctx, dynamill.Config{
					AWS: cfg, Table: "app", Rules: loaded(t, ruleFile), Worker: worker, Budget: 100, Logger: slog.New(slog.DiscardHandler),
					Started: func(r *dynamill.Running) { started <- r },
				})
			}()
			return stop, func() *dynamill.Running { return <-started }, ended
		}
		stopFirst, first, firstEnded := follow("first")
		r := first()
		if r.StateTable != "app-dynamill" || r.LeaseTable != "app-dynamill-leases" || !strings.Contains(r.StreamARN, "table/app/stream/") {
			t.Errorf("running with %+v", r)
		}
		time.Sleep(time.Minute)
		if got := groupName(t, cfg, "USER#u"); got != "Old" {
			t.Fatalf("the member carries %q", got)
		}
		if s := r.Status(); s.Seeding || s.Read < 2 || s.Stream.Records < 2 || s.Engine.Children == 0 {
			t.Errorf("status %+v", s)
		}
		if d, m := r.Description(), r.Matches(); !d.StateTableCreated || len(d.NewRules) != 1 || m.Items+m.Records < 2 ||
			len(r.MissingTargets()) > 0 {
			t.Errorf("%+v, matches %+v, missing targets %v", d, m, r.MissingTargets())
		}
		written := slices.ContainsFunc(r.RuleStats(), func(s projections.RuleStats) bool { return s.Rule == "group-name" && s.Writes > 0 })
		if left, err := r.Unfinished(t.Context()); err != nil || len(left.Parked)+left.Tasks > 0 || !written {
			t.Errorf("unfinished %+v, %v; the rule wrote: %t", left, err, written)
		}
		stopSecond, _, secondEnded := follow("second")
		time.Sleep(time.Minute)
		began := time.Now()
		stopFirst()
		if err := <-firstEnded; err != nil || time.Since(began) > 30*time.Second {
			t.Errorf("the first ended with %v after %s", err, time.Since(began))
		}
		put(t, cfg, "GROUP#g", "METADATA", "New")
		time.Sleep(5 * time.Second) // less than a lease's term: the leases were given away
		if got := groupName(t, cfg, "USER#u"); got != "New" {
			t.Errorf("the member carries %q", got)
		}
		stopSecond()
		if err := <-secondEnded; err != nil {
			t.Error(err)
		}
	})
}

// What follows the large fan-out's first children is written beside the stream.
func TestFollowWorksOffTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := inMemory(t)
		for _, user := range []string{"USER#1", "USER#2", "USER#3"} {
			put(t, cfg, "GROUP#g", user, "U")
		}
		ctx, stop := context.WithCancel(t.Context())
		ended, started := make(chan error, 1), make(chan *dynamill.Running, 1)
		go func() {
			ended <- dynamill.Follow(ctx, dynamill.Config{
				AWS: cfg, Table: "app", Rules: loaded(t, ruleFile), FanOutMax: 1, Logger: slog.New(slog.DiscardHandler),
				Started: func(r *dynamill.Running) { started <- r },
			})
		}()
		time.Sleep(time.Minute)
		put(t, cfg, "GROUP#g", "METADATA", "New")
		time.Sleep(time.Minute)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if s := (<-started).Status(); s.Engine.TaskPieces == 0 {
			t.Error("no piece of a task was worked off")
		}
		for _, user := range []string{"USER#1", "USER#2", "USER#3"} {
			if got := groupName(t, cfg, user); got != "New" {
				t.Errorf("%s carries %q", user, got)
			}
		}
	})
}

func TestFollowRefusesTablesItCannotFollow(t *testing.T) {
	set := loaded(t, ruleFile)
	for name, c := range map[string]struct {
		change func(*dynamill.Config)
		want   string
		setup  bool // the error is a *projections.SetupError
	}{
		"no rules":          {func(c *dynamill.Config) { c.Rules = nil }, "Rules is missing", false},
		"no table":          {func(c *dynamill.Config) { c.Table = "" }, "Table is missing", false},
		"no clients":        {func(c *dynamill.Config) { c.AWS = aws.Config{} }, "AWS has no region", false},
		"a short term":      {func(c *dynamill.Config) { c.LeaseTerm = time.Millisecond }, "LeaseTerm", false},
		"a short pause":     {func(c *dynamill.Config) { c.PollInterval = time.Millisecond }, "PollInterval", false},
		"a negative budget": {func(c *dynamill.Config) { c.Budget = -1 }, "Budget", false},
		"gzip of nothing":   {func(c *dynamill.Config) { c.ArchiveGzip = true }, "ArchiveGzip", false},
		"another table":     {func(c *dynamill.Config) { c.Table = "other" }, "check Config.Table and Config.AWS.Region", true},
		"its own state":     {func(c *dynamill.Config) { c.StateTable = "app" }, "Config.StateTable", true},
		"a file as archive": {func(c *dynamill.Config) { c.Archive = "library_test.go" }, "Config.Archive library_test.go cannot be used", true},
	} {
		cfg := dynamill.Config{AWS: inMemory(t), Table: "app", Rules: set, Logger: slog.New(slog.DiscardHandler)}
		c.change(&cfg)
		err := dynamill.Follow(t.Context(), cfg)
		var setup *projections.SetupError
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, &setup) != c.setup || strings.Contains(err.Error(), "--") {
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		}
	}
}

// A deleted state table is not made anew, which would seed all rules again unasked.
func TestFollowRefusesALostStateTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := inMemory(t)
		follow := dynamill.Config{AWS: cfg, Table: "app", Rules: loaded(t, ruleFile), Drain: true, Logger: slog.New(slog.DiscardHandler)}
		if err := dynamill.Follow(t.Context(), follow); err != nil {
			t.Fatal(err)
		}
		if _, err := dynamodb.NewFromConfig(cfg).DeleteTable(t.Context(),
			&dynamodb.DeleteTableInput{TableName: aws.String("app-dynamill")}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		var setup *projections.SetupError
		if err := dynamill.Follow(t.Context(), follow); !errors.As(err, &setup) ||
			!strings.Contains(err.Error(), "the state table app-dynamill was deleted") {
			t.Errorf("error %v", err)
		}
	})
}

// A drain that is cut short says so, and one that has nothing to follow yet says that.
func TestADrainThatIsCutShortReturnsItsCause(t *testing.T) {
	errUp := errors.New("the time is up")
	synctest.Test(t, func(t *testing.T) {
		cfg := inMemory(t)
		for range 300 {
			put(t, cfg, "GROUP#g", "USER#u", "U")
		}
		follow := dynamill.Config{AWS: cfg, Table: "app", Rules: loaded(t, ruleFile), Drain: true, Budget: 1,
			Logger: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errUp)
		defer cancel()
		if err := dynamill.Follow(ctx, follow); !errors.Is(err, errUp) {
			t.Errorf("error %v, want %v", err, errUp)
		}
		if err := dynamill.Follow(ctx, follow); !errors.Is(err, errUp) || !strings.Contains(err.Error(), "nothing was followed yet") {
			t.Errorf("error %v, want %v", err, errUp)
		}
		follow.Drain = false
		if err := dynamill.Follow(ctx, follow); err != nil {
			t.Errorf("stopped before it began: %v", err)
		}
	})
}

// The stream of the table is switched off under a process that follows it.
func TestFollowEndsWithTheStateThatOnlyAPersonEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := inMemory(t)
		ended := make(chan error, 1)
		go func() {
			ended <- dynamill.Follow(t.Context(), dynamill.Config{AWS: cfg, Table: "app", Rules: loaded(t, ruleFile),
				Logger: slog.New(slog.DiscardHandler)})
		}()
		time.Sleep(time.Minute)
		_, err := dynamodb.NewFromConfig(cfg).UpdateTable(t.Context(), &dynamodb.UpdateTableInput{
			TableName: aws.String("app"), StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(false)},
		})
		if err != nil {
			t.Fatal(err)
		}
		var state *dynamill.EndedError
		if err := <-ended; !errors.As(err, &state) || state.State != "stream disabled" || !strings.Contains(state.Remedy, "--table-name app") {
			t.Errorf("error %v", err)
		}
	})
}

// Only the table's key types show that a template does not suit them. The error is one that a program can name.
func TestProblemsOfTheRuleFileAreThoseOfPackageRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := inMemory(t)
		key, hash := "id", types.KeyTypeHash
		_, err := dynamodb.NewFromConfig(cfg).CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName: aws.String("numbers"), BillingMode: types.BillingModePayPerRequest,
			KeySchema:            []types.KeySchemaElement{{AttributeName: &key, KeyType: hash}},
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: &key, AttributeType: types.ScalarAttributeTypeN}},
			StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
		})
		if err != nil {
			t.Fatal(err)
		}
		set := loaded(t, `
version: 1
table: { keys: [id] }
entities:
  Post:    { key: { id: "POST#${postId}" } }
  Comment: { key: { id: "COMMENT#${commentId}" } }
rules:
  comment-count: { count: Comment, as: Post.commentCount, by: postId }
`)
		err = dynamill.Follow(t.Context(), dynamill.Config{AWS: cfg, Table: "numbers", Rules: set, Logger: slog.New(slog.DiscardHandler)})
		if problems := new(rules.Problems); !errors.As(err, &problems) || len(problems.List) == 0 {
			t.Errorf("Follow returned %v, want problems of the rule file", err)
		}
	})
}
