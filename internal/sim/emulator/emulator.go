// Package emulator gives tests a DynamoDB over HTTP: one that scripts/with-endpoints starts,
// one that the caller names, or a simulator. It is imported by tests only.
package emulator

import (
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/internal/sim/simserver"
)

// The variables that name the endpoints, and the one that makes them required.
const (
	localVariable   = "DYNAMILL_TEST_ENDPOINT"
	exactVariable   = "DYNAMILL_EXACT_ENDPOINT"
	requireVariable = "DYNAMILL_REQUIRE_ENDPOINT"
)

// standInKey is the access key that scripts/with-endpoints sets beside a DynamoDB Local of its own.
const standInKey = "local"

// An Endpoint is an address with the credentials for it.
type Endpoint struct {
	URL, Region          string
	key, secret, session string
}

// Local returns the endpoint that behaves as DynamoDB does. A test that has none
// is skipped, or fails where an endpoint is required.
//
// DynamoDB Local keeps a database for each access key. It reads all streams of a
// database at each write, so each call returns a key of its own: the tables of
// other tests neither slow a test down nor appear in its lists.
func Local(t testing.TB) Endpoint {
	t.Helper()
	found, ok := named(t, localVariable)
	if !ok {
		t.Skipf("%s names no DynamoDB to test on; `make test` brings one up", localVariable)
	}
	if found.key == standInKey {
		found.key += rand.Text()
	}
	return found
}

// Exact returns the endpoint that reports the capacity that DynamoDB bills, if there is one.
func Exact(t testing.TB) (Endpoint, bool) {
	t.Helper()
	return named(t, exactVariable)
}

// Simulated returns the endpoint of a simulator of the test's own, over HTTP.
func Simulated(t testing.TB) Endpoint {
	t.Helper()
	return Delayed(t, nil)
}

// Delayed is Simulated with requests that take effect after a time. A nil delay is none.
func Delayed(t testing.TB, delay func(accessKey, operation string, input any) time.Duration) Endpoint {
	t.Helper()
	server := httptest.NewServer(simserver.New(dynamosim.New(dynamosim.Options{}), delay))
	t.Cleanup(server.Close)
	return Endpoint{URL: server.URL, Region: "us-east-1", key: standInKey, secret: standInKey}
}

// Each runs a test at Local, and at Exact if there is one.
func Each(t *testing.T, test func(*testing.T, Endpoint)) {
	t.Helper()
	t.Run("local", func(t *testing.T) { test(t, Local(t)) })
	if exact, ok := Exact(t); ok {
		t.Run("exact", func(t *testing.T) { test(t, exact) })
	}
}

func named(t testing.TB, variable string) (Endpoint, bool) {
	t.Helper()
	url := os.Getenv(variable)
	if url == "" && required(variable) {
		t.Fatalf("%s must name a DynamoDB to test on: scripts/with-endpoints starts one", variable)
	}
	return Endpoint{
		URL: url, Region: or("AWS_REGION", "us-east-1"),
		key: or("AWS_ACCESS_KEY_ID", standInKey), secret: or("AWS_SECRET_ACCESS_KEY", standInKey), session: os.Getenv("AWS_SESSION_TOKEN"),
	}, url != ""
}

// required reports whether a run without this endpoint fails. The exact one is made for Linux on x64 only.
func required(variable string) bool {
	return (os.Getenv(requireVariable) != "" || os.Getenv("CI") != "") &&
		(variable == localVariable || runtime.GOOS == "linux" && runtime.GOARCH == "amd64")
}

func or(variable, otherwise string) string {
	if text := os.Getenv(variable); text != "" {
		return text
	}
	return otherwise
}

// Config returns the settings of a client of the endpoint. The client's
// connections are closed when the test ends.
func (e Endpoint) Config(t testing.TB) aws.Config {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return aws.Config{
		HTTPClient: &http.Client{Transport: transport}, Region: e.Region, BaseEndpoint: &e.URL,
		Credentials: credentials.NewStaticCredentialsProvider(e.key, e.secret, e.session),
	}
}

// Environ returns the environment of a process that may use the endpoint: that of
// the test, with the endpoint's credentials.
func (e Endpoint) Environ(more ...string) []string {
	env := append(os.Environ(), "AWS_REGION="+e.Region, "AWS_ACCESS_KEY_ID="+e.key, "AWS_SECRET_ACCESS_KEY="+e.secret)
	return append(env, more...)
}

// Setenv makes the test's own process use the endpoint's credentials.
func (e Endpoint) Setenv(t testing.TB) {
	t.Setenv("AWS_REGION", e.Region)
	t.Setenv("AWS_ACCESS_KEY_ID", e.key)
	t.Setenv("AWS_SECRET_ACCESS_KEY", e.secret)
}
