package projections

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func (w *world) stateTableExpires() bool {
	w.t.Helper()
	out, err := w.sim.DescribeTimeToLive(w.ctx, &dynamodb.DescribeTimeToLiveInput{TableName: new("app-dynamill")})
	if err != nil {
		w.t.Fatal(err)
	}
	return out.TimeToLiveDescription.TimeToLiveStatus == ddb.TimeToLiveStatusEnabled
}

// TestAStartThatCrashedBeforeTheStateTableExpiresIsMadeGoodByTheNext crashes behind every call of a first start.
func TestAStartThatCrashedBeforeTheStateTableExpiresIsMadeGoodByTheNext(t *testing.T) {
	for after := range 8 {
		w := newWorld(t, socialRules)
		calls := atomic.Int64{} // the table is described while the state table is read
		f := &faulty{Client: w.sim, around: func(_ string, pass func() error) error {
			if calls.Add(1) > int64(after) {
				return errCrash
			}
			return pass()
		}}
		if _, err := Open(w.ctx, Config{Client: f, Table: "app", Rules: loadRules(t, socialRules)}); err != nil && !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		w.engine(nil)
		if !w.stateTableExpires() {
			t.Errorf("after a crash behind call %d the state table has no TTL", after)
		}
	}
}

func TestALostReplyToTurningOnTTLIsNoError(t *testing.T) {
	w := newWorld(t, socialRules)
	lost := false
	f := &faulty{Client: w.sim, around: func(op string, pass func() error) error {
		if op != "UpdateTimeToLive" || lost {
			return pass()
		}
		lost = true
		return errors.Join(pass(), &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded})
	}}
	if _, err := Open(w.ctx, Config{Client: f, Table: "app", Rules: loadRules(t, socialRules)}); err != nil || !lost {
		t.Errorf("reply lost: %v; Open: %v", lost, err)
	}
}
