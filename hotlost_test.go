package dynamill

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// rollAll has every open shard end, and another one go on.
func (h *hotTable) rollAll() {
	open, err := h.sim.OpenShards("app")
	for _, shard := range open {
		if err == nil {
			_, err = h.sim.RollOver("app", shard)
		}
	}
	if err != nil {
		h.Error(err)
	}
}

// replaceStream disables the stream and enables it again, and does what the error of `run` says: the lease table is deleted.
func (h *hotTable) replaceStream() {
	for _, on := range []bool{false, true} {
		spec := &ddb.StreamSpecification{StreamEnabled: &on}
		if on {
			spec.StreamViewType = ddb.StreamViewTypeNewAndOldImages
		}
		if _, err := h.sim.UpdateTable(h.Context(), &dynamodb.UpdateTableInput{TableName: new("app"), StreamSpecification: spec}); err != nil {
			h.Fatal(err)
		}
	}
	h.deleteLeases()
}

func (h *hotTable) deleteLeases() {
	if _, err := h.sim.DeleteTable(h.Context(), &dynamodb.DeleteTableInput{TableName: new("app-dynamill-leases")}); err != nil {
		h.Fatal(err)
	}
}

// TestHotRulesAreCountedAnewAfterALongOutage has no process run for two days while the application writes, and then does what
// docs/replay.md, "After an outage", says: the lease table is deleted. Nothing of the shards of before is left in the stream.
func TestHotRulesAreCountedAnewAfterALongOutage(t *testing.T) {
	for name, outage := range map[string]func(h *hotTable){
		"records are dropped": func(h *hotTable) {},
		"their shards are gone": func(h *hotTable) {
			for range 12 {
				time.Sleep(4 * time.Hour)
				h.rollAll()
			}
		},
		"and one process has seen the last shards": func(h *hotTable) {
			for range 12 {
				time.Sleep(4 * time.Hour)
				h.rollAll()
			}
			stop := h.follow("between")
			time.Sleep(time.Minute)
			stop()
			for range 12 {
				h.write(5, time.Second)
				time.Sleep(4 * time.Hour)
				h.rollAll()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHotTable(t, 61)
				h.write(80, 0)
				stop := h.follow("a")
				h.write(100, 100*time.Millisecond)
				h.expect("seeded")
				stop()
				h.write(100, 100*time.Millisecond) // no process reads these
				outage(h)
				time.Sleep(26 * time.Hour)
				h.rollAll()
				h.deleteLeases()
				stop = h.follow("b")
				h.write(100, 100*time.Millisecond)
				h.expect("after the outage")
				stop()
			})
		})
	}
}

// TestHotRulesAreCountedAnewBehindAnotherStream has the stream disabled and enabled again behind records that no process has read.
func TestHotRulesAreCountedAnewBehindAnotherStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHotTable(t, 62)
		h.write(80, 0)
		stop := h.follow("a")
		h.write(100, 100*time.Millisecond)
		h.expect("seeded")
		stop()
		h.write(100, 100*time.Millisecond)
		h.replaceStream()
		stop = h.follow("b")
		h.write(100, 100*time.Millisecond)
		h.expect("behind another stream")
		stop()
	})
}
