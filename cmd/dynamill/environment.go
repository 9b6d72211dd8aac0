package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/smithy-go/logging"

	"github.com/dynamill/dynamill/internal/awserror"
	"github.com/dynamill/dynamill/internal/following"
)

const (
	localRegion    = "us-east-1"
	localKey       = "local" // DynamoDB Local wants letters and digits only
	connectTimeout = 5 * time.Second
	setupTimeout   = time.Minute // for finding credentials and describing the table
	connectionsMax = 128         // kept open to one host; the engine and the reader work in parallel
)

// environment is what a command works in: the table, dynamill's tables beside
// it, where they are, and the clients that reach them.
type environment struct {
	table, stateTable, leaseTable string
	region, endpoint, account     string

	tables    *dynamodb.Client
	streams   *dynamodbstreams.Client
	functions *lambda.Client
	renewal   *renewal

	items atomic.Int64 // of the table, as DynamoDB counted them some hours ago; 0 before describe
}

// connect finds region and credentials and makes the clients. Nothing is sent
// to DynamoDB yet.
func (o *options) connect(ctx context.Context, table string, logger *slog.Logger) (*environment, error) {
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	env := &environment{table: table, stateTable: o.stateTableName(table), leaseTable: o.leaseTableName(table), endpoint: o.endpoint}
	local := o.onLoopback()
	cfg, err := config.LoadDefaultConfig(ctx, o.configOptions(local, logger)...)
	if err != nil {
		return nil, env.configurationFailure(err)
	}
	if cfg.Region == "" && local {
		cfg.Region = localRegion
	}
	if cfg.Region == "" {
		return nil, unsuited("no AWS region is set: give --region, or set AWS_REGION")
	}
	env.region = cfg.Region
	found, err := cfg.Credentials.Retrieve(ctx)
	lookAgain := func(ctx context.Context) (aws.CredentialsProvider, error) {
		again, err := config.LoadDefaultConfig(ctx, o.configOptions(local, logger)...)
		return again.Credentials, err
	}
	switch {
	case err != nil && local:
		logger.Debug("no AWS credentials found, using local ones", "endpoint", o.endpoint)
		standIn := credentials.NewStaticCredentialsProvider(localKey, localKey, "")
		cfg.Credentials = standIn
		lookAgain = func(context.Context) (aws.CredentialsProvider, error) { return standIn, nil }
	case err != nil && ctx.Err() == nil:
		return nil, env.credentialsFailure(err)
	case err != nil:
		return nil, unsuited("no AWS credentials were found within %s: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", setupTimeout)
	}
	env.account = found.AccountID
	env.renewal = &renewal{first: renewalFirst, last: renewalLast, credentials: newRenewable(cfg.Credentials, lookAgain)}
	env.renewal.attach(&cfg)
	awserror.Attach(&cfg, env.place())
	env.tables = dynamodb.NewFromConfig(cfg, func(options *dynamodb.Options) {
		options.BaseEndpoint = cmp.Or(endpointOrNil(o.endpoint), options.BaseEndpoint)
	})
	env.streams = dynamodbstreams.NewFromConfig(cfg, func(options *dynamodbstreams.Options) {
		options.BaseEndpoint = cmp.Or(endpointOrNil(o.endpoint), options.BaseEndpoint)
	})
	env.functions = lambda.NewFromConfig(cfg)
	return env, nil
}

func (o *options) configOptions(local bool, logger *slog.Logger) []func(*config.LoadOptions) error {
	client := awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = connectTimeout }).
		WithTransportOptions(func(t *http.Transport) { t.MaxIdleConnsPerHost, t.MaxIdleConns = connectionsMax, connectionsMax })
	found := []func(*config.LoadOptions) error{config.WithHTTPClient(client), config.WithLogger(sdkLogger(logger))}
	if o.region != "" {
		found = append(found, config.WithRegion(o.region))
	}
	if local {
		// An instance's role has no meaning to a server on this machine, and asking for it takes seconds.
		found = append(found, config.WithEC2IMDSClientEnableState(imds.ClientDisabled))
	}
	return found
}

// sdkLogger puts what the AWS SDK says into our own log, for debugging only:
// whatever matters in it comes as an error, too.
func sdkLogger(logger *slog.Logger) logging.Logger {
	return logging.LoggerFunc(func(class logging.Classification, format string, args ...any) {
		logger.Debug(fmt.Sprintf(format, args...), "from", "AWS SDK", "class", string(class))
	})
}

func endpointOrNil(url string) *string {
	if url == "" {
		return nil
	}
	return aws.String(url)
}

// describe returns the table's description. The table must be there and in use.
func (env *environment) describe(ctx context.Context) (*types.TableDescription, error) {
	table, err := env.describeAnyStatus(ctx)
	if err == nil {
		err = following.InUse(table, env.place())
	}
	if err != nil {
		return nil, env.classify(err)
	}
	env.items.Store(aws.ToInt64(table.ItemCount))
	return table, nil
}

// describeAnyStatus is describe for a table that need not be in use. The caller classifies the error.
func (env *environment) describeAnyStatus(ctx context.Context) (*types.TableDescription, error) {
	return following.Describe(ctx, env.tables, env.place())
}

// own are dynamill's own tables beside the table.
func (env *environment) own() following.Tables {
	return following.Tables{State: env.stateTable, Lease: env.leaseTable}
}

// where names the place that was asked: region, then endpoint or account if known.
func (env *environment) where() string {
	switch {
	case env.endpoint != "":
		return env.region + " (endpoint " + env.endpoint + ")"
	case env.account != "":
		return env.region + " (account " + env.account + ")"
	}
	return env.region
}
