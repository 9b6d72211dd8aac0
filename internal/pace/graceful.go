package pace

import (
	"context"
	"time"
)

// Graceful returns a context that ends with base, and at the latest when ctx
// has been over for timeout.
func Graceful(ctx, base context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	work, cancel := context.WithCancel(base)
	stop := context.AfterFunc(ctx, func() {
		if Sleep(work, timeout) == nil {
			cancel()
		}
	})
	return work, func() { stop(); cancel() }
}
