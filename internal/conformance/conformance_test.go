package conformance_test

import (
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/dynamill/dynamill/internal/conformance"
	"github.com/dynamill/dynamill/internal/dynamosim"
)

func TestSimulator(t *testing.T) {
	for name, options := range map[string]dynamosim.Options{
		"one shard":   {},
		"four shards": {Shards: 4, Seed: 7, ScatterCollections: true},
	} {
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, func(*testing.T) conformance.Endpoint {
				sim := dynamosim.New(options)
				return conformance.Endpoint{Tables: sim, Streams: sim}
			})
		})
	}
}

// TestEndpoint runs the suite against DYNAMILL_TEST_ENDPOINT. Without one it
// has nothing to test, which is a failure where an endpoint is promised: under
// CI, or with DYNAMILL_REQUIRE_ENDPOINT set.
func TestEndpoint(t *testing.T) {
	url := os.Getenv("DYNAMILL_TEST_ENDPOINT")
	if url == "" {
		if os.Getenv("CI") != "" || os.Getenv("DYNAMILL_REQUIRE_ENDPOINT") != "" {
			t.Fatal("DYNAMILL_TEST_ENDPOINT is not set: start DynamoDB Local and give its URL")
		}
		t.Log("no DYNAMILL_TEST_ENDPOINT: nothing tested")
		return
	}
	conformance.Run(t, func(t *testing.T) conformance.Endpoint { return open(t, url) })
}

func open(t *testing.T, url string) conformance.Endpoint {
	deviates, err := conformance.DeviationsOf(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	config := aws.Config{
		Region: "us-east-1", BaseEndpoint: &url,
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	}
	return conformance.Endpoint{
		Tables: dynamodb.NewFromConfig(config), Streams: dynamodbstreams.NewFromConfig(config), Deviates: deviates,
	}
}
