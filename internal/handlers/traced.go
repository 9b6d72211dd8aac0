package handlers

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

// traceKey is where aws-lambda-go keeps the X-Ray trace id in a context.
const traceKey = "x-amzn-trace-id"

// Traced adds requestId and traceId to each line, for code that logs with the context of an invocation.
func Traced(h slog.Handler) slog.Handler { return traced{h} }

type traced struct{ slog.Handler }

// Handle adds to a line what the context tells.
func (t traced) Handle(ctx context.Context, r slog.Record) error {
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		r.AddAttrs(slog.String("requestId", lc.AwsRequestID))
	}
	if trace, ok := ctx.Value(traceKey).(string); ok && trace != "" {
		r.AddAttrs(slog.String("traceId", trace))
	}
	return t.Handler.Handle(ctx, r)
}

// WithAttrs keeps lines traced.
func (t traced) WithAttrs(attrs []slog.Attr) slog.Handler { return traced{t.Handler.WithAttrs(attrs)} }

// WithGroup keeps lines traced.
func (t traced) WithGroup(name string) slog.Handler { return traced{t.Handler.WithGroup(name)} }
