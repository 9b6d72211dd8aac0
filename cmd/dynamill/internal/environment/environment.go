// Package environment is what a command works in: the clients of AWS with their credentials and
// endpoint, the table, and dynamill's own tables beside it. It puts errors of AWS into plain words with
// their exit codes. It imports settings, ending, projections, streamreader and the rooms that read tables.
package environment

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
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
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/settings"
	"github.com/dynamill/dynamill/internal/awscall"
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

// Environment is what a command works in: the table, dynamill's tables beside it, where they are, and the clients that
// reach them.
type Environment struct {
	Table, StateTable, LeaseTable string
	Region, Endpoint, account     string
	RegionGiven                   bool // by --region; otherwise the AWS configuration has it

	Tables    *dynamodb.Client
	Streams   *dynamodbstreams.Client
	Functions *lambda.Client
	Renewal   *renewal

	load func(ctx context.Context, local bool) (aws.Config, error) // reads the AWS configuration anew
}

// Connect finds region and credentials and makes the clients. Nothing is sent to DynamoDB yet.
func Connect(parent context.Context, s *settings.Settings, table string, logger *slog.Logger) (*Environment, error) {
	ctx, cancel := context.WithTimeout(parent, setupTimeout)
	defer cancel()
	env := &Environment{Table: table, StateTable: s.StateTableName(table), LeaseTable: s.LeaseTableName(table), Endpoint: s.Endpoint,
		RegionGiven: s.Region != ""}
	env.load = func(ctx context.Context, local bool) (aws.Config, error) {
		return config.LoadDefaultConfig(ctx, configOptions(s.Region, local, logger)...)
	}
	local := s.OnLoopback()
	cfg, err := env.load(ctx, local)
	if parent.Err() != nil {
		return nil, context.Cause(parent)
	}
	if err != nil {
		return nil, configurationFailure(err)
	}
	switch {
	case cfg.Region == "" && local:
		cfg.Region = localRegion
	case cfg.Region == "":
		return nil, ending.Unsuited("no AWS region is set: give --region, or set AWS_REGION")
	}
	env.Region = cfg.Region
	found, err := cfg.Credentials.Retrieve(ctx)
	lookAgain := func(ctx context.Context) (aws.CredentialsProvider, error) {
		again, err := env.load(ctx, local)
		return again.Credentials, err
	}
	switch {
	case err != nil && parent.Err() != nil:
		return nil, context.Cause(parent)
	case err != nil && local:
		logger.Debug("no AWS credentials found, using local ones", "endpoint", s.Endpoint)
		standIn := credentials.NewStaticCredentialsProvider(localKey, localKey, "")
		cfg.Credentials = standIn
		lookAgain = func(context.Context) (aws.CredentialsProvider, error) { return standIn, nil }
	case err != nil && ctx.Err() == nil:
		return nil, credentialsFailure(err)
	case err != nil:
		return nil, ending.Unsuited("no AWS credentials were found within %s: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
			setupTimeout)
	}
	env.account = found.AccountID
	env.Renewal = &renewal{first: renewalFirst, last: renewalLast, credentials: newRenewable(cfg.Credentials, lookAgain)}
	env.Renewal.attach(&cfg)
	awserror.Attach(&cfg, env.Place())
	env.Functions = lambda.NewFromConfig(cfg)
	env.Tables = dynamodb.NewFromConfig(cfg, awscall.BoundRequests, func(o *dynamodb.Options) { env.replaceEndpoint(&o.BaseEndpoint) })
	env.Streams = dynamodbstreams.NewFromConfig(cfg, func(o *dynamodbstreams.Options) { env.replaceEndpoint(&o.BaseEndpoint) })
	return env, nil
}

// replaceEndpoint puts --endpoint, if it is given, before what the AWS configuration says.
func (env *Environment) replaceEndpoint(configured **string) {
	if env.Endpoint != "" {
		*configured = &env.Endpoint
	}
}

func configOptions(region string, local bool, logger *slog.Logger) []func(*config.LoadOptions) error {
	client := awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = connectTimeout }).
		WithTransportOptions(func(t *http.Transport) { t.MaxIdleConnsPerHost, t.MaxIdleConns = connectionsMax, connectionsMax })
	found := []func(*config.LoadOptions) error{config.WithHTTPClient(client), config.WithLogger(sdkLogger(logger))}
	if region != "" {
		found = append(found, config.WithRegion(region))
	}
	if local {
		// An instance's role has no meaning to a server on this machine, and asking for it takes seconds.
		found = append(found, config.WithEC2IMDSClientEnableState(imds.ClientDisabled))
	}
	return found
}

// sdkLogger logs for debugging what the AWS SDK says: whatever matters in it comes as an error, too.
func sdkLogger(logger *slog.Logger) logging.Logger {
	return logging.LoggerFunc(func(class logging.Classification, format string, args ...any) {
		logger.Debug(fmt.Sprintf(format, args...), "from", "AWS SDK", "class", string(class))
	})
}

// S3Client makes a client of S3, with the credentials and region of the AWS configuration: --endpoint is DynamoDB's.
func (env *Environment) S3Client(ctx context.Context) (*s3.Client, error) {
	cfg, err := env.load(ctx, false)
	if err != nil {
		return nil, configurationFailure(err)
	}
	cfg.Region = cmp.Or(cfg.Region, env.Region)
	awserror.Attach(&cfg, awserror.Place{Region: cfg.Region, Where: cfg.Region})
	return s3.NewFromConfig(cfg), nil
}

// Describe returns the table's description. The table must be there and in use.
func (env *Environment) Describe(ctx context.Context) (*types.TableDescription, error) {
	table, err := env.DescribeAnyStatus(ctx)
	if err == nil {
		err = following.InUse(table, env.Place())
	}
	if err != nil {
		return nil, env.Classify(err)
	}
	return table, nil
}

// DescribeAnyStatus is Describe for a table in any status. The caller classifies the error.
func (env *Environment) DescribeAnyStatus(ctx context.Context) (*types.TableDescription, error) {
	return following.Describe(ctx, env.Tables, env.Place())
}

// Where names the place that was asked: region, then endpoint or account if known.
func (env *Environment) Where() string {
	switch {
	case env.Endpoint != "":
		return env.Region + " (endpoint " + env.Endpoint + ")"
	case env.account != "":
		return env.Region + " (account " + env.account + ")"
	}
	return env.Region
}

// CheckOwner refuses a state table that is another table's than the one that was named.
func (env *Environment) CheckOwner(owner string) error {
	if owner == env.Table {
		return nil
	}
	return ending.Unsuited("state table %s is that of table %q, not of %q: check --table and --state-table", env.StateTable, owner, env.Table)
}
