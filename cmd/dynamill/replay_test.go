package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/replaying"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/proof/oracle"
	"github.com/dynamill/dynamill/internal/sim/worldsize"
)

// replay runs `replay`, which must end well, and returns its result.
func (w *world) replay(flags ...string) replaying.Replayed {
	w.t.Helper()
	code, stdout, stderr := w.call(append([]string{"replay", "--json"}, flags...)...)
	if code != ending.ExitDone {
		w.t.Fatalf("replay ended with exit code %d:\n%s", code, stderr)
	}
	var result replaying.Replayed
	w.must(json.Unmarshal([]byte(stdout), &result))
	return result
}

func TestAReplayMendsWhatNoRecordTellsOf(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.put(community()...)
	if result := w.replay(); result.Writes == 0 || result.Passes < 2 {
		t.Errorf("the first replay says %+v", result)
	}
	w.expectTrue()
	for _, flags := range [][]string{nil, {"--segments", "3"}, {"--rule", "member-count"}, {"--eventually-consistent"}} {
		if result := w.replay(flags...); result.Writes != 0 || result.Items == 0 {
			t.Errorf("a replay %v of what is right says %+v", flags, result)
		}
	}
	code, stdout, stderr := w.call("replay")
	if code != ending.ExitDone || !strings.Contains(stdout, " 0 writes ") || !strings.Contains(stderr, "read units") {
		t.Errorf("exit code %d, %q\n%s", code, stdout, stderr)
	}

	// The table has no stream: no record tells of any of these.
	w.delete("GROUP#dev", "USER#123")
	w.set1("POST#1", "METADATA", "commentCount", "99")
	w.delete("USER#456", "GROUP#ops")
	w.set1("USER#456", "PROFILE", "name", "Janet")
	code, stdout, stderr = w.call("replay", "--dry-run")
	for _, rule := range []string{"member-list", "comment-count", "comment-author", "member-name"} {
		if code != ending.ExitDone || !strings.Contains(stdout, rule) {
			t.Errorf("dry run: exit code %d, nothing of %s in\n%s%s", code, rule, stdout, stderr)
		}
	}
	w.enableStream()
	w.replay()
	w.drain() // what a replay writes is a change like any other to rules that read it
	w.expectTrue()
	w.expect(map[string]string{"GROUP#dev USER#123 role": "admin", "POST#1 METADATA commentCount": "2", "GROUP#ops USER#456 role": "",
		"GROUP#dev USER#456 userName": "Janet"})
	if code, stdout, _ = w.call("replay", "--dry-run"); code != ending.ExitDone || !strings.Contains(stdout, "would change nothing") {
		t.Errorf("a dry run of what is right: exit code %d, %s", code, stdout)
	}
	if _, stdout, _ = w.call("replay", "--dry-run", "--json"); !strings.Contains(stdout, `"rules": []`) {
		t.Errorf("a dry run of what is right, as JSON: %s", stdout)
	}
}

func TestAReplayTakesKeysFromElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.put(community()...)
	w.replay()
	w.delete("GROUP#dev", "USER#123")
	w.set1("POST#1", "METADATA", "commentCount", "99")
	w.enableStream()
	list := filepath.Join(t.TempDir(), "keys")
	w.must(os.WriteFile(list, []byte("USER#123/GROUP#dev\n"), 0o600))
	if result := w.replay("--from", "keys://"+list); result.Items != 1 || result.Writes == 0 {
		t.Errorf("a replay of one key says %+v", result)
	}
	w.expect(map[string]string{"GROUP#dev USER#123 role": "admin", "POST#1 METADATA commentCount": "99"})

	cmd, stdout, stderr := w.command("replay", "--from", "keys:-")
	cmd.Stdin = strings.NewReader(`{"pk": "POST#1", "sk": "METADATA"}` + "\n")
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
	w.drain()
	w.expectTrue()
	if result := w.replay("--from", "parked"); result.Items != 0 || result.Parked != 0 {
		t.Errorf("a replay of nothing that is parked says %+v", result)
	}
	w.put(item("POST#1", "COMMENT#x#bad", "userId", "123#PROFILE"))
	w.drain()
	if result := w.replay("--from", "parked"); result.Items == 0 || result.Parked == 0 {
		t.Errorf("a replay of what is still bad says %+v", result)
	}
	if code, stdout, _ := w.call("replay", "--rule", "comment-author"); code != ending.ExitDone ||
		!strings.Contains(stdout, "; 2 parked, see `dynamill parked list`") {
		t.Errorf("a replay of what is still bad: exit code %d, %s", code, stdout)
	}
	for _, c := range []struct {
		code  int
		flags []string
		says  string
	}{
		{ending.ExitInvalid, []string{"--from", "nowhere"}, "is no source"},
		{ending.ExitInvalid, []string{"--from", "keys:///not/there"}, "no such file"},
		{ending.ExitInvalid, []string{"--from", "archive:///not/there"}, "no archive"},
		{ending.ExitInvalid, []string{"--from", "export:///not/there"}, "not/there"},
		{ending.ExitInvalid, []string{"--rule", "nobodys"}, "the rules are comment-author,"},
		{ending.ExitInvalid, []string{"--from", "parked", "--segments", "3"}, "only a scan has segments"},
		{ending.ExitInvalid, []string{"--parallel", "0"}, "between 1 and"},
	} {
		if code, _, stderr := w.call(append([]string{"replay"}, c.flags...)...); code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("replay %v: exit code %d, %s", c.flags, code, stderr)
		}
	}
}

func TestChangedRulesAreCarriedOutOnlyWhereThatIsAskedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.put(community()...)
	w.replay()
	changed := strings.Replace(communityRules, "  comment-count:  { count: Comment, as: Post.commentCount }\n", "", 1)
	w.useRules(strings.Replace(changed, `where: role != "banned", `, "", 1))
	code, _, stderr := w.call("replay")
	if code != ending.ExitInvalid || !strings.Contains(stderr, "dynamill plan") || !strings.Contains(stderr, "--yes") ||
		!strings.Contains(stderr, "comment-count") {
		t.Errorf("without --yes: exit code %d, %s", code, stderr)
	}
	w.expect(map[string]string{"POST#1 METADATA commentCount": "2", "GROUP#ops METADATA memberCount": "0"})
	if code, _, stderr = w.call("replay", "--yes", "--rule", "member-list"); code != ending.ExitInvalid ||
		!strings.Contains(stderr, "leave out --rule") {
		t.Errorf("of one rule alone: exit code %d, %s", code, stderr)
	}
	w.replay("--yes")
	w.expectTrue()
	w.expect(map[string]string{"POST#1 METADATA commentCount": "", "GROUP#ops METADATA memberCount": "1"})
	if result := w.replay(); result.Writes != 0 {
		t.Errorf("a replay of what is right says %+v", result)
	}
}

const (
	replayKills    = 10
	triesMax       = 10 * replayKills
	replayAliveMin = 600 * time.Millisecond
	itemsAlive     = 2000 // for so many items each, a replay lives so much longer
	olderItems     = 800
	olderItemsSoak = 20_000 // with DYNAMILL_SOAK
	writersPause   = 20 * time.Millisecond
	replayStopMax  = 15 * time.Second // at a rate at which a page takes a minute
)

// older are n items as an application has left them, no two of one key.
func older(n int) []change.Item {
	var all []change.Item
	groups, users := max(n/200, 3), n/10
	for g := range groups {
		all = append(all, item(fmt.Sprintf("GROUP#g%d", g), "METADATA", "name", fmt.Sprint("Group ", g)))
		all = append(all, item(fmt.Sprintf("POST#p%d", g), "METADATA", "title", "Much discussed"))
	}
	for u := range users {
		all = append(all, item(fmt.Sprintf("USER#u%d", u), "PROFILE", "name", fmt.Sprint("User ", u)))
	}
	for i := 0; len(all) < n; i++ {
		user, round := i%users, i/users
		if round < groups && i%2 == 0 {
			role := []string{"member", "banned"}[i/2%2]
			all = append(all, item(fmt.Sprintf("USER#u%d", user), fmt.Sprintf("GROUP#g%d", round), "role", role, "joinedAt", "2025"))
		} else {
			all = append(all, item(fmt.Sprintf("POST#p%d", i%groups), fmt.Sprintf("COMMENT#2025#%d", i), "userId", fmt.Sprint("u", user)))
		}
	}
	return all
}

// TestAReplayThatIsKilledTenTimesBesideTrafficComesOutTrue fills a table before
// dynamill has ever run, then replays it while an application writes and
// `dynamill run` follows the stream, and kills the replay ten times, or three times
// under the race detector.
func TestAReplayThatIsKilledTenTimesBesideTrafficComesOutTrue(t *testing.T) {
	t.Parallel()
	n := olderItems
	if os.Getenv("DYNAMILL_SOAK") != "" {
		n = olderItemsSoak
	}
	alive := replayAliveMin * time.Duration(max(n/itemsAlive, 1)) // so that kills fall into every pass
	random := rand.New(rand.NewPCG(fromEnvironment(t, "DYNAMILL_SEED", seedDefault), 7))
	w := newWorld(t, "")
	base := older(n)
	w.put(base...)
	w.enableStream()
	c := &crew{world: w, random: random}
	c.app = &application{world: w, random: rand.New(rand.NewPCG(random.Uint64(), 1))}
	writing, stop := context.WithCancel(t.Context())
	defer stop()
	wrote := make(chan error, 1)
	go func() { wrote <- c.app.touchUntil(writing, base) }()

	began := time.Now()
	killed, ended := 0, 0 // some come to their end within their time, and are begun anew
	for tries := 0; killed < worldsize.Of(replayKills, 3); tries++ {
		if tries == triesMax {
			t.Fatalf("only %d replays could be killed, %d came to their end", killed, ended)
		}
		replays := make([]*process, 1+random.IntN(2))
		for i := range replays {
			replays[i] = c.startReplay("--parallel", "3", "--budget", fmt.Sprint(n/4))
		}
		if tries == 0 { // the stream is followed from somewhere in the middle on
			time.Sleep(time.Second)
			c.workers = append(c.workers, c.start("follower"))
		}
		time.Sleep(alive + time.Duration(random.Int64N(int64(alive))))
		for _, p := range replays {
			p.signal(syscall.SIGKILL)
			<-p.ended
			status, _ := p.ProcessState.Sys().(syscall.WaitStatus)
			switch {
			case status.Signaled():
				killed++
			case p.ProcessState.ExitCode() != ending.ExitDone:
				t.Fatalf("a replay ended by itself: %s\n%s", p.ProcessState, strings.Join(p.stderr.lines(), ""))
			default:
				ended++
			}
		}
	}
	took := time.Since(began)
	result := w.replay("--parallel", "3")
	stop()
	w.must(<-wrote)
	c.drain()
	c.end(c.workers[0], syscall.SIGKILL)
	c.drain()
	w.expectTrue()
	w.expectAudit(oracle.DanglingReferences, oracle.ExpiringPositions, oracle.SeededDueMarks)
	t.Logf("%d items, %d writes of the application, %d replays came to their end before, %s until the last kill; the last replay: %+v",
		len(base), c.app.writes, ended, took.Round(time.Millisecond), result)
	rest := w.replay() // of what the application changed beside the last one, references and due marks may be left
	w.expectAudit(oracle.ExpiringPositions)
	if again := w.replay(); again.Writes != 0 {
		t.Errorf("a replay of what is right says %+v; the one before wrote %d", again, rest.Writes)
	}
	if code, stdout, stderr := w.call("verify"); code != ending.ExitDone {
		t.Errorf("verify: exit code %d\n%s%s", code, stdout, stderr)
	}
}

// startReplay starts `replay` as a process of its own.
func (c *crew) startReplay(flags ...string) *process {
	cmd, _, _ := c.command(append([]string{"replay"}, flags...)...)
	p := &process{Cmd: cmd, name: "replay", stderr: new(pipe), ended: make(chan struct{}), timeline: &c.timeline}
	cmd.Stderr = p.stderr
	c.must(cmd.Start())
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // the killer looks at the outcome
	}()
	c.t.Cleanup(func() {
		p.signal(syscall.SIGKILL)
		<-p.ended
	})
	return p
}

// expectAudit compares the state table with what the items ask for.
func (w *world) expectAudit(except ...oracle.Exception) {
	w.t.Helper()
	items, err := w.scan(w.table)
	w.must(err)
	state, err := w.scan(w.table + "-dynamill")
	w.must(err)
	for i, d := range oracle.Audit(w.set, items, state, time.Now(), except...) {
		w.t.Errorf("state table: %s", d)
		if i == problemsMax {
			w.t.Fatal("and more")
		}
	}
}

// touchUntil renames, adds, moves and deletes items until ctx ends.
func (a *application) touchUntil(ctx context.Context, base []change.Item) error {
	for n := 0; ctx.Err() == nil; n++ {
		it := base[a.random.IntN(len(base))]
		pk, sk := it["pk"].Text(), it["sk"].Text()
		if a.random.IntN(8) == 0 {
			pk, sk = fmt.Sprintf("USER#new%d", n), "PROFILE"
		}
		var err error
		switch a.random.IntN(4) {
		case 0:
			err = a.insist(func(ctx context.Context) error {
				_, err := a.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &a.table, Key: keyOf(pk, sk)})
				return err
			})
		default:
			row := attributes.ItemToTable(it)
			row["pk"], row["sk"] = &types.AttributeValueMemberS{Value: pk}, &types.AttributeValueMemberS{Value: sk}
			for _, name := range []string{"name", "role"} {
				if _, ok := row[name]; ok {
					row[name] = &types.AttributeValueMemberS{Value: fmt.Sprint("changed ", n)}
				}
			}
			err = a.insist(func(ctx context.Context) error {
				_, err := a.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &a.table, Item: row})
				return err
			})
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(writersPause):
		}
	}
	return nil
}

func TestAReplayStopsAfterThePagesInHand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.put(older(300)...)
	cmd, _, _ := w.command("replay", "--budget", "20")
	said := &pipe{}
	cmd.Stderr = said
	w.must(cmd.Start())
	held := func() (pieces, owned int) {
		state, err := w.scan(w.table + "-dynamill")
		if err != nil {
			return 0, 0 // not there yet
		}
		for _, row := range state {
			if strings.HasPrefix(row["sk"].Text(), "piece/") {
				pieces++
				if _, ok := row["owner"]; ok {
					owned++
				}
			}
		}
		return pieces, owned
	}
	eventually(t, "the replay is under way", func() bool { _, owned := held(); return owned > 0 })
	w.must(cmd.Process.Signal(syscall.SIGTERM))
	stopped := time.Now()
	_ = cmd.Wait()
	if took := time.Since(stopped); took > replayStopMax {
		t.Errorf("it took %s to stop", took)
	}
	if text := strings.Join(said.lines(), ""); cmd.ProcessState.ExitCode() != ending.ExitFailed ||
		!strings.Contains(text, "the same command resumes there") {
		t.Fatalf("%s\n%s", cmd.ProcessState, text)
	}
	if pieces, owned := held(); pieces == 0 || owned > 0 {
		t.Errorf("of %d pieces %d were not given up", pieces, owned)
	}
	code, _, stderr := w.call("replay")
	if code != ending.ExitDone || !strings.Contains(stderr, "resumes the replay begun at ") ||
		!strings.Contains(stderr, "--restart begins anew") {
		t.Errorf("the same command: exit code %d\n%s", code, stderr)
	}
	w.expectTrue()
}
