package streamreader

import (
	"context"
	"testing"
	"testing/synctest"
)

// overtaken lets another process finish a shard between this one's plan and its row.
type overtaken struct{ Checkpoints }

func (c overtaken) Create(ctx context.Context, l Lease) (Lease, error) {
	if l.Shard == "parent" {
		l.Checkpoint = ShardEnd
	}
	return c.Checkpoints.Create(ctx, l)
}

func TestAShardThatAnotherProcessFinishedAfterThePlanIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{}
		parent := f.open("parent", "")
		f.write(parent, "done", 3)
		f.close(parent)
		f.write(f.open("child", "parent"), "next", 2)
		if err := newTestReader(t, f, overtaken{newLeases()}, c).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantItems(t, c, map[string]int{"next": 2})
	})
}
