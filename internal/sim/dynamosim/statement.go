package dynamosim

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/dynamill/dynamill/internal/sim/dynamosim/values"
)

// Limits of a batch of statements (API reference, BatchExecuteStatement and BatchStatementRequest).
const (
	batchStatementsMax     = 25
	statementCharactersMax = 8192
)

// BatchExecuteStatement is the SDK client's method. Of PartiQL, the simulator knows insertions, and
// updates with the key's attributes first in WHERE.
func (s *Sim) BatchExecuteStatement(ctx context.Context, in *dynamodb.BatchExecuteStatementInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error) {
	return call(ctx, s, tableService, "BatchExecuteStatement", in, s.batchExecuteStatement)
}

func (s *Sim) batchExecuteStatement(in *dynamodb.BatchExecuteStatementInput) (*dynamodb.BatchExecuteStatementOutput, error) {
	if n := len(in.Statements); n < 1 || n > batchStatementsMax {
		return nil, invalid("Member must have length less than or equal to %d and greater than or equal to 1: %d statements",
			batchStatementsMax, n)
	}
	writes, failures := make([]*write, len(in.Statements)), make([]error, len(in.Statements))
	seen := map[string]bool{}
	for i, st := range in.Statements {
		if writes[i], failures[i] = s.statement(st); failures[i] != nil {
			continue
		}
		id := holdID(writes[i].table, writes[i].key)
		if writes[i].mismatch == nil && seen[id] {
			return nil, invalid("Input statements cannot contain duplicate items")
		}
		seen[id] = true
	}
	out := &dynamodb.BatchExecuteStatementOutput{Responses: make([]types.BatchStatementResponse, len(writes))}
	for i, w := range writes {
		err := failures[i]
		if err == nil {
			out.Responses[i].TableName = &w.table.name
			var consumed *types.ConsumedCapacity
			if _, consumed, err = s.single(w); err == nil {
				if c := shown(in.ReturnConsumedCapacity, consumed); c != nil {
					out.ConsumedCapacity = append(out.ConsumedCapacity, *c)
				}
			}
		}
		if err != nil {
			out.Responses[i].Error = statementError(err)
			if w != nil && w.inserts && out.Responses[i].Error.Code == types.BatchStatementErrorCodeEnumConditionalCheckFailed {
				out.Responses[i].Error.Code = types.BatchStatementErrorCodeEnumDuplicateItem
			}
		}
	}
	return out, nil
}

// statementError is an error as the reply to one statement tells it.
func statementError(err error) *types.BatchStatementError {
	out := &types.BatchStatementError{Code: types.BatchStatementErrorCodeEnumValidationError, Message: aws.String(err.Error())}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		out.Message = aws.String(api.ErrorMessage())
	}
	var failed *types.ConditionalCheckFailedException
	var conflict *types.TransactionConflictException
	var missing *types.ResourceNotFoundException
	switch {
	case errors.As(err, &failed):
		out.Code, out.Item = types.BatchStatementErrorCodeEnumConditionalCheckFailed, failed.Item
	case errors.As(err, &conflict):
		out.Code = types.BatchStatementErrorCodeEnumTransactionConflict
	case errors.As(err, &missing):
		out.Code = types.BatchStatementErrorCodeEnumResourceNotFound
	}
	return out
}

var (
	updateStatement = regexp.MustCompile(`(?s)^\s*UPDATE\s+(\S+)\s+(.*?)\s+WHERE\s+(.*)$`)
	insertStatement = regexp.MustCompile(`(?s)^\s*INSERT\s+INTO\s+(\S+)\s+VALUE\s+\{(.*)\}\s*$`)
	insertedPair    = regexp.MustCompile(`'([^']*)'\s*:\s*(:\w+)`)
	clause          = regexp.MustCompile(`\b(SET|REMOVE)\s+`)
	isMissing       = regexp.MustCompile(`(#\w+)\s+IS\s+(NOT\s+)?MISSING`)
	keyEquality     = regexp.MustCompile(`^\s*(#\w+)\s*=\s*(:\w+)\s*(?:AND\b)?`)
)

// statement is an update in PartiQL as the write that the update expression and the condition expression
// of the same meaning ask for.
func (s *Sim) statement(st types.BatchStatementRequest) (*write, error) {
	if n := len(aws.ToString(st.Statement)); n < 1 || n > statementCharactersMax {
		return nil, invalid("Member must have length less than or equal to %d and greater than or equal to 1: a statement of %d characters",
			statementCharactersMax, n)
	}
	text, names, vals, err := placeholders(*st.Statement, st.Parameters)
	if err != nil {
		return nil, err
	}
	if parts := insertStatement.FindStringSubmatch(text); parts != nil {
		return s.insertion(names[parts[1]], parts[2], vals)
	}
	parts := updateStatement.FindStringSubmatch(text)
	if parts == nil {
		return nil, invalid("Statement wasn't well formed, can't be processed: the simulated DynamoDB knows INSERT and UPDATE ... WHERE ...")
	}
	t, err := s.table(aws.String(names[parts[1]]))
	if err != nil {
		return nil, err
	}
	delete(names, parts[1])
	update, err := updateOf(parts[2])
	if err != nil {
		return nil, err
	}
	condition, keyItem := parts[3], values.Item{}
	for _, attribute := range []keyAttribute{t.partition, t.sort} {
		if attribute.name == "" {
			continue
		}
		m := keyEquality.FindStringSubmatchIndex(condition)
		if m == nil || !t.isKey(names[condition[m[2]:m[3]]]) {
			return nil, invalid("Where clause does not contain a mandatory equality on all key attributes")
		}
		name, value := condition[m[2]:m[3]], condition[m[4]:m[5]]
		keyItem[names[name]] = vals[value]
		delete(names, name)
		delete(vals, value)
		condition = condition[m[1]:]
	}
	exists := "attribute_exists(#exists)"
	names["#exists"] = t.partition.name
	if condition = strings.TrimSpace(isMissing.ReplaceAllStringFunc(condition, existence)); condition != "" {
		exists += " AND " + condition
	}
	return s.newKeyed(&t.name, keyItem, &update, conditional{names, vals, &exists, st.ReturnValuesOnConditionCheckFailure})
}

// insertion is an item that is put if there is none with its key.
func (s *Sim) insertion(table, pairs string, vals values.Item) (*write, error) {
	t, err := s.table(&table)
	if err != nil {
		return nil, err
	}
	it := values.Item{}
	for _, m := range insertedPair.FindAllStringSubmatch(pairs, -1) {
		it[m[1]] = vals[m[2]]
	}
	w, err := s.newPut(&table, it, conditional{names: map[string]string{"#key": t.partition.name},
		condition: aws.String("attribute_not_exists(#key)")})
	if err == nil {
		w.inserts = true
	}
	return w, err
}

// existence is a test for MISSING in the language of conditions.
func existence(test string) string {
	m := isMissing.FindStringSubmatch(test)
	if m[2] != "" {
		return "attribute_exists(" + m[1] + ")"
	}
	return "attribute_not_exists(" + m[1] + ")"
}

// updateOf brings clauses SET and REMOVE, each of one path, into the two clauses of an update expression.
func updateOf(clauses string) (string, error) {
	at := clause.FindAllStringSubmatchIndex(clauses, -1)
	if at == nil || at[0][0] != 0 {
		return "", invalid("Statement wasn't well formed, can't be processed: expected SET or REMOVE")
	}
	lists := map[string][]string{}
	for i, m := range at {
		end := len(clauses)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		kind := clauses[m[2]:m[3]]
		lists[kind] = append(lists[kind], strings.TrimSpace(clauses[m[1]:end]))
	}
	update := ""
	for _, kind := range []string{"SET", "REMOVE"} {
		if lists[kind] != nil {
			update += kind + " " + strings.Join(lists[kind], ", ") + " "
		}
	}
	return update, nil
}

// placeholders replaces names in double quotes and parameters by placeholders of expressions.
func placeholders(statement string, parameters []types.AttributeValue) (text string, names map[string]string, vals values.Item, err error) {
	names, vals = map[string]string{}, values.Item{}
	var b strings.Builder
	for i := 0; i < len(statement); i++ {
		switch statement[i] {
		case '?':
			if len(vals) == len(parameters) {
				return "", nil, nil, invalid("Number of parameters in request and statement don't match.")
			}
			p := fmt.Sprintf(":p%d", len(vals))
			vals[p] = parameters[len(vals)]
			b.WriteString(p)
		case '"':
			var name []byte
			for i++; i < len(statement) && (statement[i] != '"' || i+1 < len(statement) && statement[i+1] == '"'); i++ {
				if statement[i] == '"' {
					i++ // the second of a doubled one
				}
				name = append(name, statement[i])
			}
			if len(name) > 0 && (name[0] == '#' || name[0] == ':') {
				return "", nil, nil, invalid("An expression attribute name used in the document path is not defined; attribute name: %s", name)
			}
			p := fmt.Sprintf("#q%d", len(names))
			names[p] = string(name)
			b.WriteString(p)
		default:
			b.WriteByte(statement[i])
		}
	}
	if len(vals) != len(parameters) {
		return "", nil, nil, invalid("Number of parameters in request and statement don't match.")
	}
	return b.String(), names, vals, nil
}
