package main

import (
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"

	"github.com/dynamill/dynamill"
	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/rules"
)

// connectionsMax is how many connections are kept open; the engine writes in parallel.
const connectionsMax = 32

// function answers invocations, with remedies that name the function's variables.
type function struct{ *dynamill.Handler }

// Invoke answers one invocation.
func (f *function) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	answer, err := f.Handler.Invoke(ctx, payload)
	return answer, remedied(err)
}

func newFunction(ctx context.Context, s settings, logger *slog.Logger, metrics io.Writer) (*function, error) {
	cfg, err := s.handlerConfig(ctx, logger, metrics)
	if err != nil {
		return nil, err
	}
	handler, err := dynamill.NewHandler(ctx, cfg)
	if err != nil {
		return nil, remedied(err)
	}
	return &function{handler}, nil
}

func (s *settings) handlerConfig(ctx context.Context, logger *slog.Logger, metrics io.Writer) (dynamill.HandlerConfig, error) {
	found, err := loadAWS(ctx, logger)
	if err != nil {
		return dynamill.HandlerConfig{}, err
	}
	tables := dynamodb.NewFromConfig(found, awscall.BoundRequests, func(o *dynamodb.Options) {
		if s.endpoint != "" {
			o.BaseEndpoint = &s.endpoint
		}
	})
	return dynamill.HandlerConfig{
		AWS: found, Tables: tables, Table: s.table, StateTable: s.stateTable, FanOutMax: s.fanOutMax, Worker: s.logStream,
		BesideRun: s.besideRun,
		ReadRules: func(ctx context.Context) (*rules.Set, error) { return s.loadRules(ctx, found) }, Logger: logger, Metrics: metrics,
	}, nil
}

func loadAWS(ctx context.Context, logger *slog.Logger) (aws.Config, error) {
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConnsPerHost, t.MaxIdleConns = connectionsMax, connectionsMax
	})
	said := logger.With("from", "AWS SDK")
	sdk := logging.LoggerFunc(func(class logging.Classification, format string, args ...any) {
		said.Debug(fmt.Sprintf(format, args...), "class", string(class)) // what matters comes as an error, too
	})
	cfg, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(client), config.WithLogger(sdk),
		config.WithEC2IMDSClientEnableState(imds.ClientDisabled)) // there is no instance whose role could be asked for
	if err != nil {
		return cfg, fmt.Errorf("reading the AWS configuration: %w", err)
	}
	return cfg, nil
}
