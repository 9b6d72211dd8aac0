package environment

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go/middleware"
	"github.com/cenkalti/backoff/v4"

	"github.com/dynamill/dynamill/internal/awserror"
	"github.com/dynamill/dynamill/internal/pace"
)

// The waits between two calls with credentials that AWS refuses as expired.
const (
	renewalFirst = time.Second
	renewalLast  = 15 * time.Second
)

// renewal keeps a call waiting while AWS refuses its credentials as expired, or there are none, and looks for new ones
// before it is made again. It does nothing before it is turned on, so that a process that cannot start says so at once.
type renewal struct {
	on          atomic.Bool
	expired     atomic.Bool
	first, last time.Duration // waits
	credentials *renewable
	tell        func(expired bool) // set before on
}

func (r *renewal) attach(cfg *aws.Config) {
	cfg.Credentials = r.credentials.cache
	cfg.APIOptions = append(cfg.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("dynamill.Renewal", r.call), middleware.Before)
	})
}

// TurnOn makes calls wait from now on, and says whenever that begins or ends.
func (r *renewal) TurnOn(tell func(expired bool)) {
	r.tell = tell
	r.on.Store(true)
}

func (r *renewal) call(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
	out middleware.InitializeOutput, data middleware.Metadata, err error,
) {
	wait := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(r.first), backoff.WithMaxInterval(r.last), backoff.WithMaxElapsedTime(0))
	var refusal error // of the credentials, the last one
	for {
		out, data, err = next.HandleInitialize(ctx, in)
		switch {
		case refusal != nil && ctx.Err() != nil && err != nil:
			return out, data, &renewalTimeoutError{refusal, context.Cause(ctx)} // not only that the time is up, but why it was not enough
		case !r.on.Load():
			return out, data, err
		case err == nil && r.expired.CompareAndSwap(true, false):
			r.tell(false)
			return out, data, nil
		case !hasExpired(err):
			return out, data, err
		}
		if refusal = err; r.expired.CompareAndSwap(false, true) {
			r.tell(true)
		}
		r.credentials.forget()
		if up := pace.Sleep(ctx, wait.NextBackOff()); up != nil {
			return out, data, &renewalTimeoutError{err, up}
		}
	}
}

// renewalTimeoutError says that a call's context ended before new credentials came. It unwraps to the refusal and to the
// context's cause, so a caller that bounds each call retries.
type renewalTimeoutError struct {
	error
	up error
}

func (e *renewalTimeoutError) Unwrap() []error { return []error{e.error, e.up} }

// hasExpired reports whether AWS refused credentials as expired, or none are found now: another program may be writing
// new ones.
func hasExpired(err error) bool {
	return errors.As(err, new(*missingError)) || refusedAs(err, awserror.ExpiredCodes)
}

type missingError struct{ error }

func (e *missingError) Unwrap() error { return e.error }

// renewable are credentials that can be looked for anew where they were found: the SDK reads a profile's file once.
type renewable struct {
	cache *aws.CredentialsCache
	load  func(context.Context) (aws.CredentialsProvider, error)

	mu      sync.Mutex
	current aws.CredentialsProvider // nil: to be loaded
}

func newRenewable(current aws.CredentialsProvider, load func(context.Context) (aws.CredentialsProvider, error)) *renewable {
	r := &renewable{current: current, load: load}
	r.cache = aws.NewCredentialsCache(r)
	return r
}

// Retrieve implements aws.CredentialsProvider.
func (r *renewable) Retrieve(ctx context.Context) (aws.Credentials, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current == nil {
		loaded, err := r.load(ctx)
		if err != nil {
			return aws.Credentials{}, &missingError{err}
		}
		r.current = loaded
	}
	found, err := r.current.Retrieve(ctx)
	if err != nil {
		return found, &missingError{err}
	}
	return found, nil
}

func (r *renewable) forget() {
	r.mu.Lock()
	r.current = nil
	r.mu.Unlock()
	r.cache.Invalidate()
}
