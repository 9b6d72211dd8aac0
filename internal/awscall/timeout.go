package awscall

import (
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// requestTimeout is how long a request on a table may take, with its answer of at most 16 MB. If a connection dies without a word, a
// request would otherwise wait until the system gives it up: about 15 minutes.
const requestTimeout = time.Minute

// BoundRequests has each request of a client of tables end within a minute, if its HTTP client is one of the SDK. The SDK then
// sends the request again.
func BoundRequests(o *dynamodb.Options) {
	if client, ok := o.HTTPClient.(*awshttp.BuildableClient); ok && client.GetTimeout() == 0 {
		o.HTTPClient = client.WithTimeout(requestTimeout)
	}
}
