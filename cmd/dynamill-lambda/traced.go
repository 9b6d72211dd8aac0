package main

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

// traceKey is where aws-lambda-go keeps the X-Ray trace id in a context.
const traceKey = "x-amzn-trace-id"

// traced adds to each line of the engine which invocation it is from, under the
// names that a handler's own line has.
type traced struct{ slog.Handler }

func (t traced) Handle(ctx context.Context, r slog.Record) error {
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		r.AddAttrs(slog.String("requestId", lc.AwsRequestID))
	}
	if trace, ok := ctx.Value(traceKey).(string); ok && trace != "" {
		r.AddAttrs(slog.String("traceId", trace))
	}
	return t.Handler.Handle(ctx, r)
}

func (t traced) WithAttrs(attrs []slog.Attr) slog.Handler { return traced{t.Handler.WithAttrs(attrs)} }
func (t traced) WithGroup(name string) slog.Handler       { return traced{t.Handler.WithGroup(name)} }
