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
	// TransactionsBilledBySum: a transaction is billed twice its whole size rounded up (AWS: each action's size rounded up, twice).
	TransactionsBilledBySum Deviation = "transactions-billed-by-sum"
	// UpdateErrorsUnreasoned: what goes wrong between an update and its item in a transaction, such as a number that
	// overflows, is a ValidationException of the request (AWS: a reason of the cancellation, see TransactionCanceledException).
	UpdateErrorsUnreasoned Deviation = "update-errors-unreasoned"
	// NoTableID: tables have no TableId.
	NoTableID Deviation = "no-table-id"
	// UpdatesUnsized: of the items that a transaction updates, only the request counts toward its 4 MB (AWS: the items).
	UpdatesUnsized Deviation = "updates-unsized"
	// NoStatements: a statement of several clauses, and one with NOT or OR in its condition, is refused.
	NoStatements Deviation = "no-statements"
	// CreatedByMinute: ApproximateCreationDateTime is floored to the minute (AWS: to the second).
	CreatedByMinute Deviation = "created-by-minute"
)

// DynamoDBLocal is how DynamoDB Local 3.3.1 deviates.
var DynamoDBLocal = map[Deviation]bool{TransactionsBilledBySum: true, UpdateErrorsUnreasoned: true, UpdatesUnsized: true, NoTableID: true,
	CreatedByMinute: true}

// Dynoxide is how dynoxide 1.2.1 deviates where that matters to this project.
// It differs in more, and fails those tests: among others it pads lists that are
// set beyond their end, removes list elements by their new places, and returns
// an ending sequence number for open shards.
var Dynoxide = map[Deviation]bool{NoOpRecorded: true, NoStatements: true}

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
	defer func() { _ = reply.Body.Close() }()
	switch server := strings.ToLower(reply.Header.Get("Server")); {
	case strings.Contains(server, "dynoxide"):
		return Dynoxide, nil
	case strings.Contains(server, "jetty"):
		return DynamoDBLocal, nil
	}
	return nil, nil
}
