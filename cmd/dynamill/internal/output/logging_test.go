package output

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/smithy-go"

	"github.com/dynamill/dynamill/internal/printable"
)

func TestLogsPutAWSErrorsIntoWords(t *testing.T) {
	var out strings.Builder
	logger := (&Output{Stderr: printable.NewWriter(&out), LogLevel: "info"}).Logger(&out)
	throttled := &smithy.OperationError{ServiceID: "DynamoDB", OperationName: "Scan",
		Err: &smithy.GenericAPIError{Code: "ThrottlingException", Message: "why"}}
	logger.Warn("reading failed", "error", fmt.Errorf("page 3: %w", throttled), "plain", errors.New("as it is"))
	for _, want := range []string{`error="page 3: AWS throttles dynamodb:Scan`, "why)", `plain="as it is"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got %s, want %s in it", out.String(), want)
		}
	}
}
