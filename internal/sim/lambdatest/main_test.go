package lambdatest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"go.uber.org/goleak"
)

// functionVariable makes the test binary a function instead.
const functionVariable = "LAMBDATEST_FUNCTION"

func TestMain(m *testing.M) {
	switch os.Getenv(functionVariable) {
	case "":
	case "cannot start":
		fmt.Println("no rules")
		os.Exit(3)
	default:
		lambda.Start(obey)
	}
	// Idle connections are the HTTP client's to keep.
	goleak.VerifyTestMain(&built{m},
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
	)
}

// built removes what the tests built, before goleak ends the process.
type built struct{ m *testing.M }

func (b *built) Run() int {
	defer func() {
		if binaryFolder != "" {
			os.RemoveAll(binaryFolder)
		}
	}()
	return b.m.Run()
}

// order is what the fake function is told to do.
type order struct {
	Do     string        `json:"do"`
	For    time.Duration `json:"for"`
	Append string        `json:"append"` // a file, to which a letter is appended afterwards
}

type report struct {
	PID      int       `json:"pid"`
	Deadline time.Time `json:"deadline"`
}

func obey(ctx context.Context, o order) (json.RawMessage, error) {
	time.Sleep(o.For)
	if o.Append != "" {
		f, err := os.OpenFile(o.Append, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if _, err := f.WriteString("x"); err != nil {
			return nil, err
		}
	}
	switch o.Do {
	case "fail":
		return nil, errors.New("as told")
	case "exit":
		os.Exit(7)
	}
	deadline, _ := ctx.Deadline()
	return json.Marshal(report{os.Getpid(), deadline})
}

// obedient is a command that runs the fake function.
func obedient() *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), functionVariable+"=1")
	return cmd
}

func orders(t *testing.T, o order) []byte {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
