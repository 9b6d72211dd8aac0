// Package awserror turns errors of AWS calls into plain words: the call, its table or object, the cause, the remedy, and the raw
// text last. It decides by error types and codes: message texts differ between AWS and the emulators. It imports no other room.
package awserror

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
)

// Place is where the calls go, and the table of a call that names none.
type Place struct {
	Table    string
	Where    string // for people: region, and endpoint or account
	Region   string
	Endpoint string // "" for AWS's own
}

// callError adds the subject of the call and its place to an error of the SDK, without a word.
type callError struct {
	error
	subject string
	place   Place
}

func (e *callError) Unwrap() error { return e.error }

// Attach makes every client of the configuration note in its errors which table,
// stream or object the call was for.
func Attach(cfg *aws.Config, place Place) {
	cfg.APIOptions = append(cfg.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("dynamill.Subject",
			func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
				middleware.InitializeOutput, middleware.Metadata, error,
			) {
				out, data, err := next.HandleInitialize(ctx, in)
				if err != nil {
					err = &callError{err, subjectOf(in.Parameters), place}
				}
				return out, data, err
			}), middleware.Before)
	})
}

// subjectOf names what a call is for: a table, several, a stream, or an object of S3.
func subjectOf(parameters any) string {
	switch in := parameters.(type) {
	case *dynamodb.TransactWriteItemsInput:
		return tables(transactionTables(in.TransactItems))
	case *dynamodb.BatchWriteItemInput:
		return tables(slices.Collect(maps.Keys(in.RequestItems)))
	case *dynamodb.BatchGetItemInput:
		return tables(slices.Collect(maps.Keys(in.RequestItems)))
	}
	if name := field(parameters, "TableName"); name != "" {
		return tables([]string{name})
	}
	if arn := field(parameters, "StreamArn"); arn != "" {
		return streamOf(arn)
	}
	if iterator := field(parameters, "ShardIterator"); iterator != "" {
		return streamOf(iterator) // an iterator of AWS begins with the stream's ARN
	}
	if bucket := field(parameters, "Bucket"); bucket != "" {
		return "s3://" + bucket + "/" + field(parameters, "Key") + field(parameters, "Prefix")
	}
	return ""
}

func field(parameters any, name string) string {
	v := reflect.Indirect(reflect.ValueOf(parameters))
	if v.Kind() != reflect.Struct {
		return ""
	}
	if f := v.FieldByName(name); f.IsValid() {
		text, _ := f.Interface().(*string)
		return aws.ToString(text)
	}
	return ""
}

func transactionTables(items []types.TransactWriteItem) (names []string) {
	for _, it := range items {
		for _, part := range []any{it.Put, it.Update, it.Delete, it.ConditionCheck} {
			if name := field(part, "TableName"); name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

func tables(names []string) string {
	slices.Sort(names)
	names = slices.Compact(names)
	noun := "table "
	if len(names) > 1 {
		noun = "tables "
	}
	for i, name := range names {
		names[i] = strconv.Quote(name)
	}
	return noun + strings.Join(names, " and ")
}

// streamOf names the stream of an ARN such as arn:aws:dynamodb:eu-west-1:1:table/app/stream/2026-01-01T00:00:00.000.
func streamOf(arn string) string {
	_, rest, _ := strings.Cut(arn, ":table/")
	name, _, found := strings.Cut(rest, "/stream/")
	if !found {
		return "the table's stream"
	}
	return fmt.Sprintf("the stream of table %q", name)
}
