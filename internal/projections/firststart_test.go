package projections

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// TestAFirstStartWaitsForItsTable has DynamoDB not know the state table for a while after its creation: DescribeTable is not consistent.
func TestAFirstStartWaitsForItsTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, countRules)
		var unknown atomic.Int64
		var created atomic.Bool
		f := &faulty{Client: w.sim, around: func(op string, pass func() error) error {
			if op == "DescribeTable" && created.Load() && unknown.Load() < 3 {
				unknown.Add(1)
				return &ddb.ResourceNotFoundException{}
			}
			if op == "CreateTable" {
				created.Store(true)
			}
			return pass()
		}}
		engine, err := Open(t.Context(), Config{Client: f, Table: "app", Rules: w.set, StateTable: "first"})
		if err != nil || !engine.Describe().StateTableCreated || unknown.Load() != 3 {
			t.Errorf("error %v after %d answers that there is no table", err, unknown.Load())
		}
	})
}
