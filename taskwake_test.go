package dynamill_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/dynamill/dynamill"
)

// crowded is a table with a group whose members are three tasks' pieces, and a configuration to follow it.
func crowded(t *testing.T) (cfg aws.Config, follow dynamill.Config, named func(string) int) {
	cfg = inMemory(t)
	put(t, cfg, "GROUP#g", "METADATA", "Old")
	for i := range 7 {
		put(t, cfg, "GROUP#g", fmt.Sprintf("USER#%d", i), "U")
	}
	follow = dynamill.Config{AWS: cfg, Table: "app", Rules: loaded(t, ruleFile), FanOutMax: 2, Logger: slog.New(slog.DiscardHandler)}
	named = func(name string) (n int) {
		for i := range 7 {
			if groupName(t, cfg, fmt.Sprintf("USER#%d", i)) == name {
				n++
			}
		}
		return n
	}
	return cfg, follow, named
}

// Renames follow each other so fast that a look for tasks every 5 s would come too late for most of them.
func TestProcessBeginsItsOwnTasksAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, follow, named := crowded(t)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- dynamill.Follow(ctx, follow) }()
		time.Sleep(time.Minute)
		for i := range 4 {
			name := fmt.Sprint("New", i)
			put(t, cfg, "GROUP#g", "METADATA", name)
			time.Sleep(1100 * time.Millisecond) // the stream is polled every second
			if n := named(name); n != 7 {
				t.Errorf("%d of 7 members carry the name %s", n, name)
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestDrainWorksTasksBesideItsReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, follow, named := crowded(t)
		follow.Drain = true
		if err := dynamill.Follow(t.Context(), follow); err != nil {
			t.Fatal(err)
		}
		put(t, cfg, "GROUP#g", "METADATA", "New")
		began, ended := time.Now(), make(chan error, 1)
		go func() { ended <- dynamill.Follow(t.Context(), follow) }()
		for named("New") < 7 {
			time.Sleep(100 * time.Millisecond)
		}
		written := time.Since(began)
		if err := <-ended; err != nil || written > time.Second {
			t.Errorf("%v; the members carry the name after %s, the stream was read to its end within %s", err, written, time.Since(began))
		}
	})
}
