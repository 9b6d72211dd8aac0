package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/rules"
)

// The owner of a function has neither flags nor fields.
func TestRemediesNameTheFunctionsVariables(t *testing.T) {
	set, err := rules.Load("dynamill.yaml", []byte(groupRules))
	if err != nil {
		t.Fatal(err)
	}
	sim := dynamosim.New(dynamosim.Options{})
	key := []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash},
		{AttributeName: aws.String("sk"), KeyType: types.KeyTypeRange}}
	attributes := []types.AttributeDefinition{
		{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS},
		{AttributeName: aws.String("sk"), AttributeType: types.ScalarAttributeTypeS},
	}
	for _, table := range []string{"app", "other"} {
		_, err = sim.CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName: &table, BillingMode: types.BillingModePayPerRequest, KeySchema: key, AttributeDefinitions: attributes,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	cfg := dynamill.HandlerConfig{Tables: sim, Table: "app", StateTable: "app-dynamill", Rules: set}
	if _, err := dynamill.NewHandler(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	for table, want := range map[string]string{"none": "DYNAMILL_TABLE, the function's region and DYNAMILL_ENDPOINT",
		"other": "DYNAMILL_STATE_TABLE"} {
		cfg.Table = table
		_, err := dynamill.NewHandler(t.Context(), cfg)
		err = remedied(err)
		var setup *projections.SetupError
		if !errors.As(err, &setup) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "--") ||
			strings.Contains(err.Error(), "Config.") {
			t.Errorf("table %s: error %v, want one that says %q", table, err, want)
		}
	}
}
