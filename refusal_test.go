package dynamill

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"github.com/aws/smithy-go"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/awserror"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/streamreader"
)

// processed is a Processor that always ends with the same error.
type processed struct{ err error }

func (p processed) Process(context.Context, []change.Record) (int, error) { return 0, p.err }

func TestAMissingPermissionStopsTheReaderAndTroubleOnTheWayDoesNot(t *testing.T) {
	place := awserror.Place{Table: "app", Region: "eu-west-1"}
	api := func(code string) error { return &smithy.GenericAPIError{Code: code} }
	for name, c := range map[string]struct {
		err   error
		stops bool
	}{
		"no permission":      {api("AccessDeniedException"), true},
		"expired":            {api("ExpiredTokenException"), true},
		"state table gone":   {api("ResourceNotFoundException"), true},
		"throttled":          {api("ThrottlingException"), false},
		"AWS's own trouble":  {api("InternalServerError"), false},
		"no network":         {&net.OpError{Op: "dial", Err: errors.New("refused")}, false},
		"all records done":   {nil, false},
		"another's new file": {projections.ErrEpochMoved, true},
	} {
		_, err := guard{processed{c.err}, place, new(atomic.Int64)}.Process(t.Context(), nil)
		var stopper streamreader.Stopper
		if stops := errors.As(err, &stopper) && stopper.StopReading(); stops != c.stops {
			t.Errorf("%s: stops is %v, want %v (%v)", name, stops, c.stops, err)
		}
		if !errors.Is(err, c.err) {
			t.Errorf("%s: %v does not hold its cause", name, err)
		}
	}
}
