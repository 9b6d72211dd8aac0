package table

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/dynamill/dynamill/internal/awscall"
)

// Limits of a batch of statements (API reference, BatchExecuteStatement and BatchStatementRequest).
const (
	StatementsMax          = 25
	statementCharactersMax = 8192
)

// Statement is an update of an item that exists, in PartiQL, without its values.
type Statement struct {
	text              string
	update, condition []string // placeholders of the values, in their order
	key               []string // names of the key's attributes, whose values stand between those
}

// Statement writes an update of an item in PartiQL; set and remove are parts of its update expression. It reports false if
// the text is too long, or if it names an attribute that PartiQL takes for a placeholder.
func (c *Expression) Statement(table string, key, set, remove []string, condition string) (Statement, bool) {
	st := Statement{key: key}
	var b strings.Builder
	b.WriteString("UPDATE " + quoted(table))
	for _, part := range set {
		b.WriteString(" SET " + c.partiQL(part, &st.update))
	}
	for _, part := range remove {
		b.WriteString(" REMOVE " + c.partiQL(part, &st.update))
	}
	between := " WHERE "
	for _, name := range key {
		b.WriteString(between + quoted(name) + " = ?")
		between = " AND "
	}
	b.WriteString(" AND (" + c.partiQL(condition, &st.condition) + ")")
	st.text = b.String()
	fits := len(st.text) <= statementCharactersMax && !slices.ContainsFunc(key, isPlaceholder)
	for _, name := range c.Names {
		fits = fits && !isPlaceholder(name)
	}
	return st, fits
}

// For is the statement for an item, with the values of placeholders.
func (st *Statement) For(key Row, values map[string]ddb.AttributeValue) ddb.BatchStatementRequest {
	request := ddb.BatchStatementRequest{Statement: &st.text, ReturnValuesOnConditionCheckFailure: AllOld}
	request.Parameters = make([]ddb.AttributeValue, 0, len(st.update)+len(st.key)+len(st.condition))
	for _, placeholder := range st.update {
		request.Parameters = append(request.Parameters, values[placeholder])
	}
	for _, name := range st.key {
		request.Parameters = append(request.Parameters, key[name])
	}
	for _, placeholder := range st.condition {
		request.Parameters = append(request.Parameters, values[placeholder])
	}
	return request
}

// isPlaceholder reports whether DynamoDB Local takes a name, even between quotes, for a placeholder that is not defined.
func isPlaceholder(name string) bool {
	return strings.HasPrefix(name, "#") || strings.HasPrefix(name, ":")
}

var spelledDifferently = regexp.MustCompile(`attribute_(?:not_)?exists\(#n\d+\)|#n\d+|:v\d+`)

// partiQL is an expression in PartiQL: names stand in it, and the placeholders of its values are added in their order.
func (c *Expression) partiQL(expression string, placeholders *[]string) string {
	return spelledDifferently.ReplaceAllStringFunc(expression, func(part string) string {
		if test, placeholder, ok := strings.Cut(strings.TrimSuffix(part, ")"), "("); ok {
			if test == "attribute_exists" {
				return quoted(c.Names[placeholder]) + " IS NOT MISSING"
			}
			return quoted(c.Names[placeholder]) + " IS MISSING"
		}
		if strings.HasPrefix(part, "#") {
			return quoted(c.Names[part])
		}
		*placeholders = append(*placeholders, part)
		return "?"
	})
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// InsertStatement is a new row of the state table, in PartiQL: it takes effect if there is none with that key.
func (ts *Tables) InsertStatement(r Row) ddb.BatchStatementRequest {
	var st ddb.BatchStatementRequest
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(r)) {
		parts, st.Parameters = append(parts, "'"+name+"': ?"), append(st.Parameters, r[name])
	}
	text := "INSERT INTO " + quoted(ts.StateTable) + " VALUE {" + strings.Join(parts, ", ") + "}"
	st.Statement = &text
	return st
}

// The permissions without which writes go out one by one.
const (
	MayUpdate = "dynamodb:PartiQLUpdate" // on the user's table
	MayInsert = "dynamodb:PartiQLInsert" // on the state table
)

// Batches reports whether n writes that need a permission should go out in batches.
func (ts *Tables) Batches(permission string, n int) bool {
	_, refused := ts.unserved.Load(permission)
	return n >= ts.BatchMin && !refused
}

// Statements sends a batch of statements, each for a rule, and returns the answer to each. One with an error is to go out alone, unless
// its code asks for another try: err is why that did not help. Without answers, all are to go out alone.
func (ts *Tables) Statements(ctx context.Context, permission, doing string, owners []string, statements []ddb.BatchStatementRequest) (
	[]ddb.BatchStatementResponse, error) {
	responses, err := ts.sendStatements(ctx, doing, owners, statements)
	if awscall.Unserved(err) {
		ts.endBatches(ctx, permission, err)
	}
	for _, r := range responses {
		if refusal := answered(r.Error); awscall.Unserved(refusal) {
			ts.endBatches(ctx, permission, refusal)
		}
	}
	return responses, err
}

// NoteWrittenAlone notes that a write took effect alone. If DynamoDB had called its statement invalid (answer; nil if it was not sent), the
// endpoint cannot read such statements: no more batches go out.
func (ts *Tables) NoteWrittenAlone(ctx context.Context, permission string, answer *ddb.BatchStatementError) {
	if answer != nil && answer.Code == ddb.BatchStatementErrorCodeEnumValidationError {
		ts.endBatches(ctx, permission, answered(answer))
	}
}

func (ts *Tables) endBatches(ctx context.Context, permission string, why error) {
	if _, known := ts.unserved.LoadOrStore(permission, true); !known {
		ts.Logger.WarnContext(ctx, "sending writes one by one, not in batches of 25, which is slower: if the error is a missing permission, "+
			"grant "+permission, "error", why)
	}
}

// answered is the answer to a statement as an error; nil if it took effect.
func answered(e *ddb.BatchStatementError) error {
	if e == nil {
		return nil
	}
	return &smithy.GenericAPIError{Code: string(e.Code), Message: aws.ToString(e.Message)}
}

// sendStatements sends statements, and sends those again whose answers ask for another try.
func (ts *Tables) sendStatements(ctx context.Context, doing string, owners []string, statements []ddb.BatchStatementRequest) (
	[]ddb.BatchStatementResponse, error) {
	ts.Counters.Writes.Add(1)
	var responses []ddb.BatchStatementResponse
	var open []int
	for i := range statements {
		open = append(open, i)
	}
	_, err := Attempt(ctx, ts.Reader, doing, func() (_ struct{}, err error) {
		sent := open
		out, err := ts.sendStatementsOnce(ctx, owners, statements, sent)
		if err != nil {
			return struct{}{}, err
		}
		if responses == nil {
			responses = make([]ddb.BatchStatementResponse, len(statements))
		}
		open = nil
		for i, r := range out.Responses {
			responses[sent[i]] = r
			if r.Error == nil || !awscall.RetryCode(string(r.Error.Code)) {
				continue
			}
			open = append(open, sent[i])
			if _, throttled := awscall.ConflictOrThrottle(answered(r.Error)); throttled || err == nil {
				err = answered(r.Error)
			}
		}
		return struct{}{}, err
	})
	return responses, err
}

// sendStatementsOnce sends those of the statements that have these numbers.
func (ts *Tables) sendStatementsOnce(ctx context.Context, owners []string, statements []ddb.BatchStatementRequest, numbers []int) (
	*dynamodb.BatchExecuteStatementOutput, error) {
	in := &dynamodb.BatchExecuteStatementInput{ReturnConsumedCapacity: ddb.ReturnConsumedCapacityTotal}
	for _, number := range numbers {
		in.Statements = append(in.Statements, statements[number])
	}
	return writeOnce(ts, WriteUnitsMin*len(numbers),
		func() (*dynamodb.BatchExecuteStatementOutput, error) {
			out, err := ts.Client.BatchExecuteStatement(ctx, in)
			if err == nil && len(out.Responses) != len(numbers) {
				err = fmt.Errorf("DynamoDB answers %d statements with %d responses", len(numbers), len(out.Responses))
			}
			return out, err
		},
		func(out *dynamodb.BatchExecuteStatementOutput) ([]string, float64) {
			var accepted []string
			for i, r := range out.Responses {
				if r.Error == nil {
					accepted = append(accepted, owners[numbers[i]])
				}
			}
			return accepted, unitsOf(out.ConsumedCapacity...)
		})
}
