package simserver_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/smithy-go"

	"github.com/dynamill/dynamill/internal/sim/conformance"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/internal/sim/simserver"
)

// The SDK's own clients pass the conformance suite, so nothing is lost between their types and the Sim's.
func TestClientsOverHTTPConform(t *testing.T) {
	conformance.Run(t, func(t *testing.T) conformance.Endpoint {
		config := serve(t, simserver.New(dynamosim.New(dynamosim.Options{}), nil))
		return conformance.Endpoint{Tables: dynamodb.NewFromConfig(config), Streams: dynamodbstreams.NewFromConfig(config)}
	})
}

func TestDelayKnowsKeyOperationAndInput(t *testing.T) {
	type call struct {
		key, operation string
		input          any
	}
	var got []call
	config := serve(t, simserver.New(dynamosim.New(dynamosim.Options{}), func(key, operation string, input any) time.Duration {
		got = append(got, call{key, operation, input})
		return time.Millisecond
	}))
	began := time.Now()
	if _, err := dynamodb.NewFromConfig(config).ListTables(t.Context(), &dynamodb.ListTablesInput{Limit: aws.Int32(3)}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < time.Millisecond {
		t.Errorf("the answer came after %v", took)
	}
	if len(got) != 1 || got[0].key != "application" || got[0].operation != "ListTables" {
		t.Fatalf("calls %v", got)
	}
	if in, ok := got[0].input.(*dynamodb.ListTablesInput); !ok || aws.ToInt32(in.Limit) != 3 {
		t.Errorf("input %#v", got[0].input)
	}
}

func TestUnknownOperationIsNamed(t *testing.T) {
	config := serve(t, simserver.New(dynamosim.New(dynamosim.Options{}), nil))
	_, err := dynamodb.NewFromConfig(config).ListBackups(context.Background(), &dynamodb.ListBackupsInput{})
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != "UnknownOperationException" {
		t.Errorf("got %v", err)
	}
}

func serve(t *testing.T, handler http.Handler) aws.Config {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return aws.Config{
		Region: "us-east-1", BaseEndpoint: &server.URL, HTTPClient: server.Client(),
		Credentials: credentials.NewStaticCredentialsProvider("application", "secret", ""),
	}
}
