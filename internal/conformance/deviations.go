package conformance

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// Deviation names one way in which an emulator is known to differ from what AWS documents.
type Deviation string

// The known deviations.
const (
	// NoOpRecorded: a write that changes nothing makes a MODIFY record (AWS: none).
	NoOpRecorded Deviation = "no-op-recorded"
	// TransactionsBilledOnce: a transaction's writes are billed like plain ones (AWS: twice).
	TransactionsBilledOnce Deviation = "transactions-billed-once"
)

// DynamoDBLocal is how DynamoDB Local 3.3.1 deviates.
var DynamoDBLocal = map[Deviation]bool{TransactionsBilledOnce: true}

// Dynoxide is how dynoxide 1.2.1 deviates.
var Dynoxide = map[Deviation]bool{NoOpRecorded: true}

// DeviationsOf tells by a server's replies which emulator it is: dynoxide says
// so in its Server header, DynamoDB Local runs on Jetty. Anything else is held
// to what AWS documents.
func DeviationsOf(ctx context.Context, url string) (map[Deviation]bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("asking %s what it is: %w", url, err)
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking %s what it is: %w", url, err)
	}
	defer reply.Body.Close()
	switch server := strings.ToLower(reply.Header.Get("Server")); {
	case strings.Contains(server, "dynoxide"):
		return Dynoxide, nil
	case strings.Contains(server, "jetty"):
		return DynamoDBLocal, nil
	}
	return nil, nil
}
