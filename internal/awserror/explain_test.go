package awserror_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/dynamill/dynamill/internal/awserror"
)

var place = awserror.Place{Table: "app", Where: "eu-west-1 (account 1)", Region: "eu-west-1"}

func operation(service, name string, err error) error {
	return &smithy.OperationError{ServiceID: service, OperationName: name, Err: err}
}

func coded(code string) error { return &smithy.GenericAPIError{Code: code, Message: "raw words"} }

func answered(status int, err error) error {
	return &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: err}
}

func TestExplainNamesCauseAndRemedy(t *testing.T) {
	sent := func(err error) error {
		return &smithyhttp.RequestSendError{Err: &url.Error{Op: "Post", URL: "https://dynamodb.eu-west-1.amazonaws.com/", Err: err}}
	}
	local := place
	local.Endpoint, local.Where = "http://localhost:8000", "us-east-1 (endpoint http://localhost:8000)"
	for name, c := range map[string]struct {
		err  error
		in   awserror.Place
		kind awserror.Kind
		want []string
	}{
		"permission": {operation("DynamoDB", "Query", coded("AccessDeniedException")), place, awserror.Permission,
			[]string{`no permission for dynamodb:Query on table "app" in eu-west-1 (account 1): allow this action`}},
		"permission in a transaction": {operation("DynamoDB", "TransactWriteItems", coded("AccessDeniedException")), place, awserror.Permission,
			[]string{"dynamodb:PutItem, UpdateItem, DeleteItem or ConditionCheckItem"}},
		"permission for a bucket": {operation(s3.ServiceID, "ListObjectsV2", coded("AccessDenied")), place, awserror.Permission,
			[]string{"s3:ListBucket"}},
		"permission for a key": {operation("DynamoDB", "GetItem", coded("KMSAccessDeniedException")), place, awserror.Permission,
			[]string{"kms:Decrypt"}},
		"expired credentials": {operation("DynamoDB", "GetItem", coded("ExpiredTokenException")), place, awserror.Expired,
			[]string{"credentials have expired: renew them"}},
		"unknown credentials": {operation("DynamoDB", "GetItem", coded("UnrecognizedClientException")), place, awserror.Credentials,
			[]string{"refused", "AWS_PROFILE"}},
		"another clock": {operation(s3.ServiceID, "GetObject", coded("RequestTimeTooSkewed")), place, awserror.Credentials, []string{"clock"}},
		"table deleted": {operation("DynamoDB", "Scan", &types.ResourceNotFoundException{Message: aws.String("raw words")}), place,
			awserror.Missing,
			[]string{`table "app" has gone away, or is in another region`}},
		"no bucket": {operation(s3.ServiceID, "GetObject", coded("NoSuchBucket")), place, awserror.Missing,
			[]string{"no bucket", "check the name"}},
		"bucket elsewhere": {operation(s3.ServiceID, "GetObject", coded("PermanentRedirect")), place, awserror.Region,
			[]string{"another region than eu-west-1"}},
		"object in cold storage": {operation(s3.ServiceID, "GetObject", coded("InvalidObjectState")), place, awserror.Archived,
			[]string{"restore it"}},
		"throttled by capacity": {operation("DynamoDB", "PutItem",
			&types.ProvisionedThroughputExceededException{Message: aws.String("raw words")}), place, awserror.Throttled,
			[]string{`AWS throttles dynamodb:PutItem on table "app"`, "--budget"}},
		"throttled by the account": {operation("DynamoDB", "PutItem", coded("RequestLimitExceeded")), place, awserror.Throttled,
			[]string{"throttles"}},
		"throttled by S3": {operation(s3.ServiceID, "GetObject", coded("SlowDown")), place, awserror.Throttled, []string{"s3:GetObject"}},
		"too many stream readers": {operation(dynamodbstreams.ServiceID, "GetRecords",
			&streams.LimitExceededException{Message: aws.String("raw words")}), place, awserror.Throttled,
			[]string{"more readers than AWS serves"}},
		"too many tables": {operation("DynamoDB", "CreateTable", &types.LimitExceededException{Message: aws.String("raw words")}), place,
			awserror.Limit,
			[]string{"dynamodb:CreateTable", "quota"}},
		"table in creation": {operation("DynamoDB", "CreateTable", &types.ResourceInUseException{Message: aws.String("raw words")}), place,
			awserror.Busy, []string{"wait until it is ACTIVE"}},
		"conflict": {operation("DynamoDB", "TransactWriteItems", &types.TransactionCanceledException{Message: aws.String("raw words")}), place,
			awserror.Conflict,
			[]string{"other writers changed the same items"}},
		"10 GB": {operation("DynamoDB", "PutItem", &types.ItemCollectionSizeLimitExceededException{Message: aws.String("raw words")}),
			place, awserror.TooLarge, []string{"10 GB"}},
		"invalid": {operation("DynamoDB", "PutItem", coded("ValidationException")), place, awserror.Invalid,
			[]string{"refuses dynamodb:PutItem", "the table's own key attributes"}},
		"trouble": {operation("DynamoDB", "PutItem", &types.InternalServerError{Message: aws.String("raw words")}), place,
			awserror.Trouble, []string{"AWS itself failed", "start again"}},
		"a proxy's error": {operation("DynamoDB", "PutItem", answered(502, coded("UnknownError"))), place, awserror.Trouble,
			[]string{"HTTP status 502"}},
		"a proxy's page": {operation("DynamoDB", "PutItem", answered(503, &smithy.DeserializationError{Err: errors.New("raw words")})), place,
			awserror.Trouble, []string{"HTTP status 503"}},
		"half an answer": {operation("DynamoDB", "Query", answered(200, fmt.Errorf("raw words: %w", io.ErrUnexpectedEOF))), place,
			awserror.Unreachable, []string{"broke off its answer to dynamodb:Query"}},
		"another server": {operation("DynamoDB", "PutItem", answered(404, coded("UnknownError"))), local, awserror.Foreign,
			[]string{"did not answer as DynamoDB does: check --endpoint"}},
		"no JSON": {operation("DynamoDB", "PutItem", &smithy.DeserializationError{Err: errors.New("raw words")}), local, awserror.Foreign,
			[]string{"did not answer as DynamoDB does"}},
		"no such region": {operation("DynamoDB", "PutItem", sent(&net.DNSError{Err: "raw words", Name: "x"})), place, awserror.Unreachable,
			[]string{"DynamoDB in eu-west-1 cannot be reached: check the network and --region"}},
		"no server": {operation("DynamoDB", "PutItem", sent(&net.OpError{Op: "dial", Err: errors.New("raw words")})), local,
			awserror.Unreachable, []string{"http://localhost:8000 cannot be reached: check --endpoint"}},
		"a broken send": {operation("DynamoDB", "PutItem", sent(errors.New("raw words"))), place, awserror.Unreachable,
			[]string{"cannot be reached"}},
		"a deadline": {operation("DynamoDB", "Scan", fmt.Errorf("raw words: %w", &aws.RequestCanceledError{Err: context.DeadlineExceeded})),
			place, awserror.Unreachable, []string{`did not answer dynamodb:Scan on table "app" in time`}},
		"a certificate": {operation("DynamoDB", "PutItem", sent(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}})), place,
			awserror.Unreachable,
			[]string{"not trusted", "AWS_CA_BUNDLE"}},
		"no TLS": {operation("DynamoDB", "PutItem", sent(http.ErrSchemeMismatch)), local, awserror.Unreachable,
			[]string{"does not speak TLS", "http://"}},
		"without a call": {coded("AccessDeniedException"), place, awserror.Permission, []string{`no permission for DynamoDB on table "app"`}},
	} {
		t.Run(name, func(t *testing.T) {
			got := awserror.Explain(fmt.Errorf("verifying table \"app\": %w", c.err), c.in)
			if got == nil || got.Kind != c.kind {
				t.Fatalf("got %v, want kind %s", got, c.kind)
			}
			text := got.Error()
			for _, want := range append(c.want, "raw words") {
				if want == "raw words" && (strings.Contains(name, "TLS") || strings.Contains(name, "certificate")) {
					continue
				}
				if !strings.Contains(text, want) {
					t.Errorf("got %q, want %q in it", text, want)
				}
			}
			if !strings.HasPrefix(text, `verifying table "app": `) || strings.Count(text, "verifying") != 1 {
				t.Errorf("got %q, want the words of the caller first and once", text)
			}
			if !strings.HasSuffix(text, "("+c.err.Error()+")") {
				t.Errorf("got %q, want the raw text last", text)
			}
			if strings.ContainsAny(strings.TrimSuffix(text, c.err.Error()+")"), "{}") {
				t.Errorf("got %q, want no placeholder left", text)
			}
		})
	}
}

func TestExplainLeavesOtherErrors(t *testing.T) {
	for name, err := range map[string]error{
		"none":             nil,
		"a plain error":    errors.New("it says AccessDeniedException"),
		"an unknown code":  operation("DynamoDB", "PutItem", coded("BrandNewException")),
		"a stop":           operation("DynamoDB", "PutItem", fmt.Errorf("x: %w", context.Canceled)),
		"another deadline": context.DeadlineExceeded,
	} {
		if got := awserror.Explain(err, place); got != nil {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestKindsStopOnlyWhereARetryIsOfNoUse(t *testing.T) {
	for kind, want := range map[awserror.Kind][2]bool{ // environment, lasting
		awserror.Permission: {true, true}, awserror.Expired: {true, true}, awserror.Missing: {true, true}, awserror.Foreign: {true, true},
		awserror.Unreachable: {true, false}, awserror.Limit: {true, false}, awserror.Busy: {true, false},
		awserror.Throttled: {false, false}, awserror.Trouble: {false, false}, awserror.Conflict: {false, false}, awserror.Invalid: {false, false},
	} {
		if kind.Environment() != want[0] || kind.Lasting() != want[1] {
			t.Errorf("%s: environment %v, lasting %v, want %v", kind, kind.Environment(), kind.Lasting(), want)
		}
	}
}

// TestAttachNotesTheSubjectOfTheCall sees that the sentence names the table of the
// call, which need not be the table that the command works on.
func TestAttachNotesTheSubjectOfTheCall(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"__type": "x#AccessDeniedException", "message": "raw words"}`)
	}))
	defer server.Close()
	cfg := aws.Config{Region: "eu-west-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
	awserror.Attach(&cfg, place)
	tables, stream := dynamodb.NewFromConfig(cfg), dynamodbstreams.NewFromConfig(cfg)
	name, key := aws.String("app-dynamill"), map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "1"}}
	arn := aws.String("arn:aws:dynamodb:eu-west-1:1:table/other/stream/2026-01-01T00:00:00.000")
	for want, call := range map[string]func() error{
		`dynamodb:GetItem on table "app-dynamill" in eu-west-1 (account 1)`: func() error {
			_, err := tables.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: name, Key: key})
			return err
		},
		`on tables "app" and "app-dynamill" in`: func() error {
			_, err := tables.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
				{Put: &types.Put{TableName: name, Item: key}}, {Delete: &types.Delete{TableName: aws.String("app"), Key: key}},
				{Delete: &types.Delete{TableName: name, Key: key}},
			}})
			return err
		},
		`dynamodb:BatchGetItem on table "app-dynamill" in`: func() error {
			_, err := tables.BatchGetItem(t.Context(),
				&dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{*name: {Keys: []map[string]types.AttributeValue{key}}}})
			return err
		},
		`dynamodb:DescribeStream on the stream of table "other" in`: func() error {
			_, err := stream.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: arn})
			return err
		},
		`dynamodb:GetRecords on the stream of table "other" in`: func() error {
			_, err := stream.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: aws.String(*arn + "|1|xyz")})
			return err
		},
		`dynamodb:GetRecords on the table's stream in`: func() error {
			_, err := stream.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: aws.String("000|xyz")})
			return err
		},
	} {
		if got := awserror.Explain(call(), awserror.Place{}); got == nil || !strings.Contains(got.Error(), want) {
			t.Errorf("got %v, want %q in it", got, want)
		}
	}
}
