package dynamill_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/dynamill/dynamill"
)

// unscannable is a client whose scans of one table fail while there is an error.
type unscannable struct {
	*dynamodb.Client
	failure atomic.Pointer[error]
	asked   atomic.Int64
}

func (u *unscannable) Scan(ctx context.Context, in *dynamodb.ScanInput, options ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	if failure := u.failure.Load(); failure != nil && *in.TableName == "app" {
		u.asked.Add(1)
		return nil, *failure
	}
	return u.Client.Scan(ctx, in, options...)
}

// TestSeedingOutlivesTroubleThatPasses has scans fail for longer than one call is sent again.
func TestSeedingOutlivesTroubleThatPasses(t *testing.T) {
	denied := error(&smithy.GenericAPIError{Code: "AccessDeniedException", Message: "no"})
	for name, c := range map[string]struct {
		failure error
		drain   bool
		ends    bool
	}{
		"trouble of AWS":             {&types.InternalServerError{}, false, false},
		"trouble of AWS, in a drain": {&types.InternalServerError{}, true, true},
		"no permission":              {denied, false, true},
		"a row that cannot be read":  {errors.New("row i/x of the state table cannot be read"), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := inMemory(t)
				put(t, cfg, "GROUP#g", "METADATA", "Old")
				put(t, cfg, "GROUP#g", "USER#1", "U")
				tables := &unscannable{Client: dynamodb.NewFromConfig(cfg)}
				tables.failure.Store(&c.failure)
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() {
					ended <- dynamill.Follow(ctx, dynamill.Config{AWS: cfg, Tables: tables, Table: "app", Rules: loaded(t, ruleFile),
						Drain: c.drain, Logger: slog.New(slog.DiscardHandler)})
				}()
				time.Sleep(5 * time.Minute)
				if c.ends {
					if err := <-ended; !errors.Is(err, c.failure) {
						t.Errorf("error %v, want %v", err, c.failure)
					}
					stop()
					return
				}
				failed := tables.asked.Load()
				tables.failure.Store(nil)
				time.Sleep(time.Minute)
				stop()
				if err := <-ended; err != nil || failed == 0 {
					t.Errorf("error %v after %d failed scans", err, failed)
				}
				out, err := tables.Client.Scan(t.Context(), &dynamodb.ScanInput{TableName: new("app-dynamill")})
				if err != nil {
					t.Fatal(err)
				}
				for _, row := range out.Items {
					if s, ok := row["state"].(*types.AttributeValueMemberS); ok && s.Value != "live" {
						t.Errorf("a rule is %s, want live", s.Value)
					}
				}
			})
		})
	}
}
