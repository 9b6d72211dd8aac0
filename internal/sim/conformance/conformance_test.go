package conformance_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/dynamill/dynamill/internal/sim/conformance"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/internal/sim/emulator"
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

// TestEndpoint runs the suite against DYNAMILL_TEST_ENDPOINT.
func TestEndpoint(t *testing.T) {
	server := emulator.Local(t)
	conformance.Run(t, func(t *testing.T) conformance.Endpoint { return open(t, server) })
}

func open(t *testing.T, server emulator.Endpoint) conformance.Endpoint {
	deviates, err := conformance.DeviationsOf(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	config := server.Config(t)
	return conformance.Endpoint{
		Tables: dynamodb.NewFromConfig(config), Streams: dynamodbstreams.NewFromConfig(config), Deviates: deviates,
	}
}
