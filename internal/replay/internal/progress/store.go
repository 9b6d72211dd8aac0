package progress

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/awscall"
)

// ErrLost says that a piece belongs to another process by now.
var ErrLost = errors.New("another process has taken the piece")

// Client is what the store needs of *dynamodb.Client.
type Client interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
}

var _ Client = (*dynamodb.Client)(nil)

// retryTotal bounds how long one request is sent again, beside the attempts of the AWS SDK itself.
const retryTotal = time.Minute

// Store keeps runs in a state table. It is safe for concurrent use.
type Store struct {
	client Client
	table  string
	unique func() string
}

// NewStore returns the store in a state table that exists. unique draws the names of generations.
func NewStore(client Client, table string, unique func() string) *Store {
	return &Store{client: client, table: table, unique: unique}
}

// Attempt sends a request until it is answered for good, or for a minute.
func Attempt[T any](ctx context.Context, f func() (T, error)) (T, error) {
	return awscall.Persist(ctx, retryTotal, f)
}

// Get reads a run's row. Without one the run is of no passes.
func (s *Store) Get(ctx context.Context, id string) (Run, error) {
	row, err := s.get(ctx, Run{ID: id}, sortOfRun)
	if err != nil {
		return Run{}, fmt.Errorf("reading how far replay %s is: %w", id, err)
	}
	return runOf(id, row), nil
}

func (s *Store) get(ctx context.Context, run Run, sort string) (map[string]ddb.AttributeValue, error) {
	out, err := Attempt(ctx, func() (*dynamodb.GetItemOutput, error) {
		return s.client.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: &s.table, ConsistentRead: aws.Bool(true),
			Key: map[string]ddb.AttributeValue{attrPartition: text(run.partition()), attrSort: text(sort)},
		})
	})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

// Opened is a run, and how it was come by.
type Opened struct {
	Run
	Joined    bool      // it was begun before, or by another process
	GivenUpAt time.Time // of the unfinished run in whose place it is begun, its last progress; else zero
}

// Open joins the run if it is unfinished and has had progress within idleMax, unless anew is true. Otherwise it begins it
// from the start.
func (s *Store) Open(ctx context.Context, run Run, anew bool, idleMax time.Duration) (Opened, error) {
	for range openAttemptsMax {
		opened, err := s.open(ctx, run, anew, idleMax)
		if err != nil || opened.Generation != "" {
			return opened, err
		}
	}
	return Opened{}, fmt.Errorf("beginning replay %s: its row comes and goes", run.ID)
}

// openAttemptsMax: a row that expires between reading and writing is not there the next time.
const openAttemptsMax = 5

// open is one attempt of Open. If the row has expired since it was read, the run has no generation.
func (s *Store) open(ctx context.Context, run Run, anew bool, idleMax time.Duration) (opened Opened, err error) {
	found, err := s.Get(ctx, run.ID)
	if err != nil {
		return opened, err
	}
	if found.Finished.IsZero() && !anew && found.IsOf(run.Passes) {
		progressed, err := s.progressed(ctx, found, idleMax)
		if err != nil || time.Since(progressed) <= idleMax {
			return Opened{Run: found, Joined: true}, err
		}
		opened.GivenUpAt = progressed
	}
	run.Generation, run.Started, run.Finished = s.unique(), time.Now(), time.Time{}
	run.seen = run.row(run.Started)
	err = s.put(ctx, run.seen, found.seen, attrGeneration)
	conflict, lost := errors.AsType[*ddb.ConditionalCheckFailedException](err)
	switch {
	case lost: // another process has just begun it, or this was it and the answer was lost
		opened.Run = runOf(run.ID, conflict.Item)
		opened.Joined = opened.Generation != run.Generation
	case err != nil:
		return opened, fmt.Errorf("beginning replay %s: %w", run.ID, err)
	default:
		opened.Run = run
	}
	return opened, nil
}

// progressed is when a run was last worked on, as its pieces' rows say, each of
// which lives for rowTTL after its last write. It asks only of one that was begun before idleMax.
func (s *Store) progressed(ctx context.Context, run Run, idleMax time.Duration) (time.Time, error) {
	last := run.Started
	if time.Since(last) <= idleMax {
		return last, nil
	}
	pieces, err := s.rows(ctx, run, run.prefixOfAll())
	if err != nil {
		return last, fmt.Errorf("reading when replay %s was worked on: %w", run.ID, err)
	}
	for _, p := range pieces {
		if written := time.Unix(numberOf(p.row[attrTTL]), 0).Add(-rowTTL); written.After(last) {
			last = written
		}
	}
	return last, nil
}

// Finish notes that all of a run is done, unless it was begun anew meanwhile.
func (s *Store) Finish(ctx context.Context, run Run, items int64) error {
	now := time.Now()
	run.Finished, run.Items = now, items
	err := s.put(ctx, run.row(now), run.seen, attrGeneration)
	if _, anew := errors.AsType[*ddb.ConditionalCheckFailedException](err); err != nil && !anew {
		return fmt.Errorf("finishing replay %s: %w", run.ID, err)
	}
	return nil
}

// Pieces reads the rows of a pass's pieces that were begun.
func (s *Store) Pieces(ctx context.Context, run Run, pass int, names []string) (map[string]Piece, error) {
	found, err := s.rows(ctx, run, run.prefix(pass))
	if err != nil {
		return nil, fmt.Errorf("reading how far the pieces of replay %s are: %w", run.ID, err)
	}
	pieces := make(map[string]Piece, len(found))
	for _, name := range names {
		if p, ok := found[run.sortOf(Place{pass, name})]; ok {
			pieces[name] = p
		}
	}
	return pieces, nil
}

// rows reads the rows of pieces by their sort keys, which begin with the prefix.
func (s *Store) rows(ctx context.Context, run Run, prefix string) (map[string]Piece, error) {
	found := map[string]Piece{}
	in := &dynamodb.QueryInput{
		TableName: &s.table, ConsistentRead: aws.Bool(true),
		KeyConditionExpression:   aws.String("#pk = :run AND begins_with(#sk, :pieces)"),
		ExpressionAttributeNames: map[string]string{"#pk": attrPartition, "#sk": attrSort},
		ExpressionAttributeValues: map[string]ddb.AttributeValue{
			":run": text(run.partition()), ":pieces": text(prefix),
		},
	}
	for {
		out, err := Attempt(ctx, func() (*dynamodb.QueryOutput, error) { return s.client.Query(ctx, in) })
		if err != nil {
			return nil, err
		}
		for _, row := range out.Items {
			found[textOf(row[attrSort])] = pieceOf(row)
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			return found, nil
		}
	}
}

// Piece reads one piece's row.
func (s *Store) Piece(ctx context.Context, run Run, at Place) (Piece, error) {
	row, err := s.get(ctx, run, run.sortOf(at))
	if err != nil {
		return Piece{}, fmt.Errorf("reading how far piece %s is: %w", at.Name, err)
	}
	return pieceOf(row), nil
}

// write changes a piece's row if it still is as seen, and returns the row in force, also beside ErrLost. If an answer was
// lost, the owner in the row tells: its name is this process's alone.
func (s *Store) write(ctx context.Context, run Run, at Place, seen, next Piece, owner string) (Piece, error) {
	for range writeAttemptsMax {
		next.Counter = seen.Counter + 1
		row := run.pieceRow(at, next, time.Now())
		err := s.put(ctx, row, seen.row, attrCounter, attrOwner)
		if err == nil {
			next.row = row
			return next, nil
		}
		conflict, ok := errors.AsType[*ddb.ConditionalCheckFailedException](err)
		if !ok {
			return seen, err
		}
		if seen = pieceOf(conflict.Item); seen.Owner != owner {
			break
		}
	}
	return seen, ErrLost
}

// writeAttemptsMax: the second attempt knows the counter that a first one without an answer has left.
const writeAttemptsMax = 3

// put writes a row if the attributes in unchanged still have the values in seen, readable or not. If no row was
// seen, it writes only if there is none.
func (s *Store) put(ctx context.Context, row, seen map[string]ddb.AttributeValue, unchanged ...string) error {
	if len(seen) == 0 {
		unchanged = []string{attrPartition}
	}
	in := &dynamodb.PutItemInput{
		TableName: &s.table, Item: row, ExpressionAttributeNames: map[string]string{},
		ReturnValuesOnConditionCheckFailure: ddb.ReturnValuesOnConditionCheckFailureAllOld,
	}
	var conditions []string
	for _, name := range unchanged {
		in.ExpressionAttributeNames["#"+name] = name
		value, ok := seen[name]
		if !ok {
			conditions = append(conditions, "attribute_not_exists(#"+name+")")
			continue
		}
		if in.ExpressionAttributeValues == nil { // DynamoDB refuses an empty map
			in.ExpressionAttributeValues = map[string]ddb.AttributeValue{}
		}
		in.ExpressionAttributeValues[":"+name] = value
		conditions = append(conditions, "#"+name+" = :"+name)
	}
	in.ConditionExpression = aws.String(strings.Join(conditions, " AND "))
	_, err := Attempt(ctx, func() (*dynamodb.PutItemOutput, error) { return s.client.PutItem(ctx, in) })
	return err
}
