// Package followed finds out how a table is followed, from the lease rows, the stream and Lambda's event source mappings;
// internal/health judges what it finds. It imports environment and writes nothing.
package followed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/smithy-go"

	"github.com/dynamill/dynamill"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/environment"
	"github.com/dynamill/dynamill/internal/awserror"
	"github.com/dynamill/dynamill/internal/following"
	"github.com/dynamill/dynamill/internal/health"
	"github.com/dynamill/dynamill/internal/infra"
	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/stream/backlog"
	"github.com/dynamill/dynamill/internal/stream/leases"
)

const (
	// backlogTime bounds the reading of the stream in one look.
	backlogTime = 5 * time.Second
	// ownersTime bounds the wait until owners renew their leases: two default terms.
	ownersTime = 2 * dynamill.LeaseTermDefault
)

// Look finds out how a table is followed. Only the first of several looks waits for owners to renew their leases.
type Look struct {
	Env    *environment.Environment
	LagMax time.Duration
	watch  health.Watch
}

// Facts finds out everything except the facts of the state table. The caller has read that, and the rows of the leases.
// besideFunction says that the processes leave some rules to a function.
func (l *Look) Facts(ctx context.Context, rows []leases.Lease, leaseTable, besideFunction bool) (health.Facts, error) {
	f := health.Facts{
		LagMax: l.LagMax, LeaseTable: health.Existence{Name: l.Env.LeaseTable, There: leaseTable}, Remedies: remedies(l.Env),
		Followed: slices.ContainsFunc(rows, leases.Lease.OfShard),
	}
	arn, err := l.stream(ctx, &f, rows)
	if err != nil {
		return f, err
	}
	// The stream is read while the owners of the leases have time to renew them.
	var reading sync.WaitGroup
	if leaseTable && f.Stream.On && arn != "" {
		reading.Go(func() { l.readBacklog(ctx, &f, arn, rows) })
	}
	err = l.watchOwners(ctx, rows)
	reading.Wait()
	if err != nil {
		return f, err
	}
	f.Now = time.Now()
	f.Owners = l.watch.Owners(f.Now)
	for i, s := range f.Shards {
		f.Shards[i].Rate = l.watch.Rate(s.ID)
	}
	f.BesideFunction = besideFunction && asksLambda(l.Env)
	if f.BesideFunction || !anyAlive(f.Owners) {
		f.Functions = functionsOf(ctx, l.Env, arn)
	}
	return f, nil
}

// stream describes the table's stream, and returns its ARN. If a permission is missing for that, f says so.
func (l *Look) stream(ctx context.Context, f *health.Facts, rows []leases.Lease) (arn string, err error) {
	table, err := l.Env.DescribeAnyStatus(ctx)
	if denied := refusedAction(err); denied != "" {
		f.Stream = health.Stream{On: true, Unknown: denied}
		return "", nil
	}
	if err != nil {
		return "", err
	}
	f.Stream.On = following.EnabledStream(table) != ""
	arn = aws.ToString(table.LatestStreamArn)
	for _, row := range rows {
		if f.Stream.On && row.Stream != "" && row.Stream != arn {
			f.Stream.Former = row.Stream
		}
	}
	return arn, nil
}

// watchOwners reads the lease rows again until it is known which owners renew them.
func (l *Look) watchOwners(ctx context.Context, rows []leases.Lease) error {
	began := time.Now()
	for {
		now := time.Now()
		l.watch.Look(now, watchedRows(rows))
		wait := l.watch.Next(now)
		if wait == 0 || now.Sub(began) > ownersTime {
			return nil
		}
		if err := pace.Sleep(ctx, wait); err != nil {
			return err
		}
		var err error
		if rows, _, err = l.Env.Leases().Read(ctx); err != nil {
			return fmt.Errorf("reading the leases: %w", err)
		}
	}
}

func watchedRows(rows []leases.Lease) []health.Row {
	watched := make([]health.Row, len(rows))
	for i, row := range rows {
		watched[i] = health.Row{Shard: row.Shard, Owner: row.Owner, Run: row.Run, Term: row.Term, Counter: row.Counter, Newest: row.Newest}
		if row.Finished() { // the row keeps the name of the process that ended the shard, which renews it no more
			watched[i].Owner = ""
		}
	}
	return watched
}

func anyAlive(owners []health.Owner) bool {
	return slices.ContainsFunc(owners, func(o health.Owner) bool { return !o.Silent })
}

func (l *Look) readBacklog(ctx context.Context, f *health.Facts, arn string, rows []leases.Lease) {
	ctx, cancel := context.WithTimeout(ctx, backlogTime)
	defer cancel()
	log, err := backlog.Read(ctx, backlog.Config{Streams: l.Env.Streams, StreamARN: arn, Rows: rows})
	if err != nil {
		f.Stream.Unknown = unreadReason(err)
		return
	}
	byID := map[string]leases.Lease{}
	for _, row := range rows {
		if row.Stream == arn {
			byID[row.Shard] = row
		}
	}
	for _, s := range log.Shards {
		one := health.Shard{
			ID: s.Shard, Done: byID[s.Shard].Newest,
			Records: s.Records, AtLeast: s.AtLeast, Oldest: s.Oldest, Lost: s.Lost != nil,
		}
		if s.Err != nil {
			one.Unknown = unreadReason(s.Err)
			if row := byID[s.Shard]; one.Oldest.IsZero() && row.EmptyPolls == 0 {
				one.NoOlder = row.Newest
			}
		}
		f.Shards = append(f.Shards, one)
	}
	for _, id := range log.Skipped {
		f.Shards = append(f.Shards, health.Shard{ID: id, Done: byID[id].Newest, Skipped: true})
	}
}

// reason says in one phrase why a service did not tell what was asked; otherwise is said of any other error.
func reason(err error, service, otherwise string) string {
	if denied := refusedAction(err); denied != "" {
		return denied
	}
	if refusal, ok := errors.AsType[smithy.APIError](err); ok {
		return service + " answered " + refusal.ErrorCode()
	}
	return otherwise
}

func unreadReason(err error) string {
	return reason(err, "the stream", "the stream was not read to its end in "+backlogTime.String())
}

// remedies are the sentences that name this table's commands.
func remedies(env *environment.Environment) health.Remedies {
	run := "dynamill run --table " + printable.Shell(env.Table)
	if env.StateTable != env.Table+following.StateSuffix {
		run += " --state-table " + printable.Shell(env.StateTable)
	}
	if env.RegionGiven {
		run += " --region " + printable.Shell(env.Region)
	}
	if env.Endpoint != "" {
		run += " --endpoint " + printable.Shell(env.Endpoint)
	}
	return health.Remedies{
		Run:          "start `" + run + "`",
		RunBeside:    "start `" + run + " --beside-function`",
		EnableStream: "enable it with `" + following.EnableStream(env.Place()) + "`; then " + env.Own().ReplayMissed(),
		Replay:       env.Own().ReplayMissed(),
		StartOver: fmt.Sprintf("stop every `dynamill run` of this table, delete the lease table %s, and start `%s`, which seeds every rule anew "+
			"(docs/state-table.md, \"Starting over\")", env.LeaseTable, run),
		Skipped: fmt.Sprintf("delete the rows of these shards from the lease table %s (docs/operations.md, \"A shard that is skipped\")",
			env.LeaseTable),
	}
}

// asksLambda reports whether Lambda is asked for functions: at AWS, and where the environment names
// an endpoint of Lambda (AWS_ENDPOINT_URL_LAMBDA, AWS_ENDPOINT_URL). DynamoDB Local knows no functions.
func asksLambda(env *environment.Environment) bool {
	if env.Endpoint == "" || cmp.Or(os.Getenv("AWS_ENDPOINT_URL_LAMBDA"), os.Getenv("AWS_ENDPOINT_URL")) != "" {
		return true
	}
	u, err := url.Parse(env.Endpoint)
	return err == nil && slices.ContainsFunc(awsDomains, func(d string) bool { return strings.HasSuffix(u.Hostname(), d) })
}

// awsDomains are those of AWS's endpoints: with and without IPv6, and in China (AWS General Reference, "AWS service endpoints").
var awsDomains = []string{".amazonaws.com", ".amazonaws.com.cn", ".api.aws", ".api.amazonwebservices.com.cn"}

const (
	functionsTime = 5 * time.Second
	mappingsMax   = 100 // of one stream, which Lambda lets two functions read at once
)

// functionsOf lists the Lambda functions that are mapped to a stream, or gives the reason why Lambda did not.
func functionsOf(ctx context.Context, env *environment.Environment, streamARN string) (found health.Functions) {
	if streamARN == "" || !asksLambda(env) {
		return found
	}
	ctx, cancel := context.WithTimeout(ctx, functionsTime)
	defer cancel()
	ofTemplate := infra.Options{Table: env.Table, StateTable: env.StateTable}.FunctionName()
	pages := lambda.NewListEventSourceMappingsPaginator(env.Functions, &lambda.ListEventSourceMappingsInput{
		EventSourceArn: &streamARN, MaxItems: aws.Int32(mappingsMax),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return health.Functions{Unknown: reason(err, "Lambda", "Lambda did not answer")}
		}
		for _, m := range page.EventSourceMappings {
			name := functionName(aws.ToString(m.FunctionArn))
			unqualified, _, _ := strings.Cut(name, ":")
			found.List = append(found.List, health.Function{
				Name: name, OfTemplate: unqualified == ofTemplate, State: aws.ToString(m.State),
				LastResult:          aws.ToString(m.LastProcessingResult),
				ReportsItemFailures: slices.Contains(m.FunctionResponseTypes, types.FunctionResponseTypeReportBatchItemFailures),
			})
		}
	}
	return found
}

// functionName is the name in a function's ARN, with its alias or version.
func functionName(arn string) string {
	parts := strings.SplitN(arn, ":", 7)
	return parts[len(parts)-1]
}

// refusedAction is a phrase for an action that the credentials in use may not do; "" for any other error.
func refusedAction(err error) string {
	if told := awserror.Explain(err, awserror.Place{}); told == nil || told.Kind != awserror.Permission {
		return ""
	}
	operation, ok := errors.AsType[*smithy.OperationError](err)
	if !ok {
		return "no permission"
	}
	service := "dynamodb"
	if operation.ServiceID == lambda.ServiceID {
		service = "lambda"
	}
	return "no permission for " + service + ":" + operation.OperationName
}

// Watch tells from several readings of the leases whether any process follows a stream.
type Watch struct {
	watch      health.Watch // of the one goroutine that reads the leases
	unfollowed atomic.Bool
}

// Observe notes one reading of a stream's leases.
func (w *Watch) Observe(rows []leases.Lease, stream string, now time.Time) {
	rows = slices.DeleteFunc(slices.Clone(rows), func(l leases.Lease) bool { return l.Stream != stream })
	w.watch.Look(now, watchedRows(rows))
	w.unfollowed.Store(!anyAlive(w.watch.Owners(now)))
}

// Unfollowed reports whether the readings show that no process follows the stream: no lease has an owner, or each owner
// was silent for longer than its term allows. It is safe for concurrent use.
func (w *Watch) Unfollowed() bool { return w.unfollowed.Load() }

// NoFollower is what to do where a Watch is unfollowed.
const NoFollower = "no process applies the stream: start `dynamill run`"
