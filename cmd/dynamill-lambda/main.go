// Command dynamill-lambda is dynamill as a function of AWS Lambda: the executable `bootstrap` of the runtime provided.al2023.
// docs/lambda.md says how it is deployed and set up.
//
// It gives the library's handler (dynamill.NewHandler) its settings from environment variables, and holds
// no logic of its own: where the rules come from (rulefile.go), in which words a remedy is said (remedy.go),
// and how Lambda is told that a function cannot start (initreport.go).
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/dynamill/dynamill/internal/printable"
)

// initTimeout leaves time to report an error within Lambda's ten seconds (Lambda developer guide, "Lambda execution environment").
const initTimeout = 9 * time.Second

func main() {
	s, err := readSettings(os.Getenv)
	logger := newLogger(os.Stderr, s.logLevel)
	slog.SetDefault(logger) // what aws-lambda-go says, it says through package log
	if s.runtimeAPI == "" {
		logger.Error("this program runs on AWS Lambda only (AWS_LAMBDA_RUNTIME_API is not set): use `dynamill run` elsewhere")
		os.Exit(1)
	}
	var f *function
	if err == nil {
		f, err = start(s, logger)
	}
	if err != nil {
		failInit(s.runtimeAPI, logger, err)
	}
	lambda.Start(f)
}

func start(s settings, logger *slog.Logger) (f *function, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			f, err = nil, fmt.Errorf("panic while starting: %v: %s", cause, debug.Stack())
		}
	}()
	ctx, cancel := context.WithTimeoutCause(context.Background(), initTimeout,
		errors.New("the environment was not ready within the time that Lambda gives"))
	defer cancel()
	f, err = newFunction(ctx, s, logger, os.Stdout)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w (%w)", err, context.Cause(ctx))
	}
	return f, err
}

// failInit says, to the log and to Lambda, why no invocation can be taken, and ends the process.
func failInit(runtimeAPI string, logger *slog.Logger, err error) {
	logger.Error("the function cannot start", "error", err.Error())
	if err := reportInit(runtimeAPI, err); err != nil {
		logger.Error("reporting the init error to Lambda failed", "error", err.Error())
	}
	os.Exit(1)
}

// newLogger logs JSON, which CloudWatch Logs Insights finds fields in, and which does no harm to a terminal that shows it.
func newLogger(out io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(printable.NewJSONWriter(out), &slog.HandlerOptions{Level: level}))
}
