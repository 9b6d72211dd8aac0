package replaying

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/environment"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/output"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/report"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/session"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/settings"
	"github.com/dynamill/dynamill/internal/replay"
)

func TestReplayStateTellsWhatIsLeftOfThePass(t *testing.T) {
	halfway := state{
		Progress: replay.Progress{
			Pass: "derive/2/0", Number: 1, Of: 4, Pieces: 8, PiecesDone: 3, PassItems: 10_000,
			Totals: replay.Totals{Items: 9_000, ReadUnits: 1234.5},
		},
		total: 20_000, about: true, work: report.EngineWork{Writes: 12_000, WriteUnits: 24_000},
	}
	exceeded := halfway
	exceeded.total = 9_999
	for _, c := range []struct {
		name  string
		state state
		line  string
	}{
		{"before the first page", state{total: 100}, "looking what there is to do"},
		{"halfway", halfway,
			"pass 1 of 4  [##########..........] 50%  10,000 of about 20,000 items  2,000/s  5s left  3 of 8 pieces  24,000 write units  1,234 " +
				"read units"},
		{"the table has grown", exceeded,
			"pass 1 of 4  [#######.............] 38%  10,000 items  2,000/s  3 of 8 pieces  24,000 write units  1,234 read units"},
	} {
		var meter progress.Meter
		at := time.Unix(0, 0)
		shown := c.state.shown()
		before := shown
		before.Done = 0
		meter.Add(at, before)
		if got := progress.Line(shown, meter.Add(at.Add(5*time.Second), shown), 200); got != c.line {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.line)
		}
	}
	var meter progress.Meter
	meter.Add(time.Unix(0, 0), state{Progress: replay.Progress{Pass: "derive/2/0", Number: 1, Of: 4}}.shown())
	shown := halfway.shown()
	var out bytes.Buffer
	for _, level := range []string{"warn", "info"} {
		logger := (&output.Output{LogLevel: level, JSON: true}).Logger(&out)
		if logger.Info("replaying", progress.Attributes(shown, meter.Add(time.Unix(5, 0), shown))...); level == "warn" && out.Len() > 0 {
			t.Errorf("--log-level warn: %s", &out)
		}
	}
	var object map[string]any
	if err := json.Unmarshal(out.Bytes(), &object); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"msg": "replaying", "pass": "derive/2/0", "items": 10_000.0, "percent": 50.0, "seconds_left": 5.0, "items_per_second": 2000.0,
		"total": 20_000.0, "writes": 12_000.0, "write_units": 24_000.0, "read_units": 1234.5, "pieces": 8.0, "pieces_done": 3.0,
	} {
		if object[name] != want {
			t.Errorf("%s is %v, want %v", name, object[name], want)
		}
	}
}

func TestAnUnfinishedReplayIsSpokenOf(t *testing.T) {
	begun := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for want, o := range map[string]replay.Opened{
		"resumes the replay begun at 2026-03-04 05:06:07 UTC: 6 of 8 pieces done; --restart begins anew": {
			Begun: begun, Number: 1, Of: 1, Pieces: 8, PiecesDone: 6},
		"resumes the replay begun at 2026-03-04 05:06:07 UTC: pass 2 of 2, 0 of 1,000 pieces done; --restart begins anew": {
			Begun: begun, Number: 2, Of: 2, Pieces: 1000},
		"begins anew: the unfinished replay has had no progress since 2026-03-04 05:06:07 UTC, and what it did may not hold any more": {
			GivenUpAt: begun, Number: 1, Of: 1, Pieces: 8},
	} {
		if got := openedText(o); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestAnEstimateTellsPassesOverTheStateTableFromOthers(t *testing.T) {
	c := environment.Counts{Items: 1000, Bytes: 40 << 20, StateItems: 500, StateBytes: 4 << 20}
	r := &replayer{options: Options{From: FromScan}}
	some := &replayer{options: Options{From: FromParked}}
	const scan, look, sweep = 10 << 10, 1000 * (1 + 11), 1<<10 + 2*500 // items of 41 KB
	for _, e := range []struct {
		says    string
		r       *replayer
		left    int
		formers bool
		want    environment.Estimate
	}{
		{"new rules", r, 3, false, environment.Estimate{Scan: 3 * scan, Look: 3 * look, Sweep: 0}},
		{"new rules, and former ones that go", r, 4, true, environment.Estimate{Scan: 3 * scan, Look: 3 * look, Sweep: sweep}},
		{"the sweep of former ones is left", r, 1, true, environment.Estimate{Scan: 0, Look: 0, Sweep: sweep}},
		{"all is in force", r, 0, false, environment.Estimate{Scan: scan, Look: look, Sweep: sweep}},
		{"some items", some, 0, false, environment.Estimate{Scan: 0, Look: look, Sweep: 0}},
	} {
		over, sweeps := e.r.passesOver(e.left, e.formers)
		if got := c.Estimate(over, sweeps, c.Items, e.r == r, false); got != e.want {
			t.Errorf("%s: %+v, want %+v", e.says, got, e.want)
		}
	}
	if got := c.Estimate(1, 1, c.Items, true, true); got.Scan != scan/2 || got.Sweep != sweep-512 {
		t.Errorf("eventually consistent: %+v", got)
	}
}

func TestHowAReplayFailedSaysWhatToDo(t *testing.T) {
	r := &replayer{Session: &session.Session{Settings: &settings.Settings{}, Table: "app", Env: &environment.Environment{Table: "app"}}}
	for code, want := range map[string]struct {
		exit int
		text string
	}{
		"AccessDeniedException": {ending.ExitEnvironment, "no permission for dynamodb:Scan"},
		"ExpiredTokenException": {ending.ExitEnvironment, "the AWS credentials have expired: renew them"},
		"ProvisionedThroughputExceededException": {ending.ExitFailed,
			"tries them again; set or lower --budget or --read-rate to ask the table for less"},
		"ThrottlingException": {ending.ExitFailed, "--read-rate"},
		"ValidationException": {ending.ExitFailed, "tries them again"},
	} {
		failed := fmt.Errorf("reading: %w", &smithy.OperationError{ServiceID: dynamodb.ServiceID, OperationName: "Scan",
			Err: &smithy.GenericAPIError{Code: code, Message: "no"}})
		err := r.failure(t.Context(), replay.Totals{}, &replay.PiecesError{Source: "scan", Pieces: 4, Errors: []error{failed, failed}})
		var known *ending.Failure
		exit := ending.ExitFailed
		if errors.As(err, &known) {
			exit = known.Code
		}
		if exit != want.exit || !strings.Contains(err.Error(), want.text) ||
			code == "ValidationException" && strings.Contains(err.Error(), "--budget") {
			t.Errorf("%s: exit code %d, %v", code, exit, err)
		}
	}
	denied := &smithy.OperationError{ServiceID: s3.ServiceID, OperationName: "GetObject",
		Err: &smithy.GenericAPIError{Code: "AccessDenied", Message: "no"}}
	err := r.failure(t.Context(), replay.Totals{}, &replay.PiecesError{Source: "export", Pieces: 1,
		Errors: []error{fmt.Errorf("reading s3://b/k (s3:GetObject): %w", denied)}})
	if strings.Contains(err.Error(), "dynamodb:") || !strings.Contains(err.Error(), "s3://b/k") {
		t.Errorf("of a bucket: %v", err)
	}
}
