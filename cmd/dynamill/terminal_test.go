package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/parked"
	"github.com/dynamill/dynamill/internal/following"
	"github.com/dynamill/dynamill/internal/projections"
)

// hostile is a text that steers terminals and imitates a line of output. The
// rule file's own form of it is hostileYAML.
const (
	hostile     = "\x1b[31m\u009b2J\u202e\x7f\u200b\u2028\r\nFAKE: all is well\x1b]0;title\a\b\f"
	hostileYAML = `\e[31m\x9b2J\u202e\x7f\u200b\u2028\r\nFAKE: all is well`
	hostileLine = "FAKE"
)

const hostileRules = `version: 1
table: { keys: [pk, sk] } # ` + "\x1b[31m\u202e" + `
entities:
  User:       { key: { pk: "USER#${userId}",   sk: "PROFILE" } }
  Post:       { key: { pk: "POST#${postId}",   sk: "METADATA" }, match: { kind: "` + hostileYAML + `" } }
  Comment:    { key: { pk: "POST#${postId}",   sk: "COMMENT#${commentId}" } }
  Group:      { key: { pk: "GROUP#${groupId}", sk: "METADATA" } }
  Membership: { key: { pk: "USER#${userId}",   sk: "GROUP#${groupId}" } }
  Member:     { key: { pk: "GROUP#${groupId}", sk: "USER#${userId}" } }
rules:
  comment-author: { copy: [name as userName], from: User, to: Comment, by: userId, if_missing: { userName: "` + hostileYAML + `" } }
  member-list:    { mirror: Membership, as: Member, attributes: [role] }
  member-count:   { count: Membership, as: Group.memberCount, where: "role != \"\e[2J\u202e\"" }
  comment-count:  { count: Comment, as: Post.commentCount }
`

// hostileItems are items whose keys and values are hostile.
func hostileItems() []change.Item {
	return []change.Item{
		item("USER#"+hostile, "PROFILE", "name", hostile),
		item("GROUP#"+hostile, "METADATA", hostile, hostile),
		item("USER#"+hostile, "GROUP#"+hostile, "role", hostile),
		item("USER#"+hostile, "GROUP#dev", "role", "admin"+hostile),
		item("POST#"+hostile, "METADATA", "kind", strings.TrimSuffix(hostile, "\x1b]0;title\a\b\f")),
		item("POST#"+hostile, "COMMENT#"+hostile, "userId", hostile),
		item("POST#"+hostile, "COMMENT#2", "userId", "smuggled#"+hostile),
		item("POST#"+hostile, "COMMENT#3", "userId", "nobody"+hostile),
	}
}

// expectHarmless fails if an output could steer a terminal, or if a value looks like a line of it.
func expectHarmless(t *testing.T, what, output string) {
	t.Helper()
	odd := func(r rune) bool {
		return r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
	}
	if at := strings.IndexFunc(output, odd); at >= 0 || !utf8.ValidString(output) {
		t.Errorf("%s prints %q, want printable text", what, output[max(0, at):])
	}
	for line := range strings.Lines(output) {
		if strings.HasPrefix(strings.TrimSpace(line), hostileLine) {
			t.Errorf("%s prints a value as a line of its own:\n%s", what, output)
			return
		}
	}
}

func (w *world) file(name, text string) string {
	w.t.Helper()
	name = filepath.Join(filepath.Dir(w.rules), name)
	w.must(os.WriteFile(name, []byte(text), 0o600))
	return name
}

// expectOutput runs a command and checks what it prints.
func (w *world) expectOutput(code int, args ...string) (stdout string) {
	w.t.Helper()
	got, stdout, stderr := w.call(args...)
	if got != code {
		w.t.Errorf("%q: exit code %d, want %d\n%s%s", args, got, code, stdout, stderr)
	}
	expectHarmless(w.t, strings.Join(args, " "), stdout+stderr)
	return stdout
}

func TestNoCommandLetsDataSteerTheTerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.useRules(hostileRules)
	w.put(hostileItems()...)
	changed := w.file("changed.yaml", strings.ReplaceAll(hostileRules, "all is well", "all is done"))
	key, err := json.Marshal(hostile)
	w.must(err)
	record := w.file("record.json", `{"eventName": "INSERT", "dynamodb": {"SequenceNumber": "100", "Keys": {"pk": {"S": `+string(key)+
		`}, "sk": {"S": "PROFILE"}},
		"NewImage": {"pk": {"S": `+string(key)+`}, "sk": {"S": "PROFILE"}}}}`)
	known := w.file("known.json", strings.ReplaceAll(strings.ReplaceAll(w.read(record), `"pk": {"S": "`, `"pk": {"S": "USER#`),
		`, "sk": {"S": "PROFILE"}}}}`, `, "sk": {"S": "PROFILE"}, "name": {"S": `+string(key)+`}}}}`))
	broken := w.file("broken.json", `{"eventName": "`+hostile+`", "dynamodb": {}}`)
	keys := w.file("keys.txt", "{\"pk\": \"\x1b[31m\nFAKE\n\"\x1b[2J\n"+string(key)+"\n\xff\n")

	w.expectOutput(ending.ExitDone, "check")
	w.expectOutput(ending.ExitDone, "explain", record)
	w.expectOutput(ending.ExitDone, "explain", known)
	w.expectOutput(ending.ExitInvalid, "explain", broken)
	w.expectOutput(ending.ExitInvalid, "explain", w.file("none"+hostile, "{"))
	w.expectOutput(ending.ExitInvalid, "none"+hostile)
	w.expectOutput(ending.ExitInvalid, "plan", "--none"+hostile)
	w.expectOutput(ending.ExitDone, "plan")
	w.expectOutput(ending.ExitDone, "run", "--drain", "--worker", "w"+hostile, "--log-level", "debug")
	engine, err := projections.Open(t.Context(), projections.Config{Client: w.client, Table: w.table, Rules: w.set})
	w.must(err)
	w.must(engine.ParkRecord(t.Context(), "1"+hostile, "record.value"+hostile, "no value: "+hostile, []byte("{"+hostile+"\xff")))

	for _, it := range hostileItems() {
		key := change.Key{Partition: it["pk"].Text(), Sort: it["sk"].Text()}.String()
		w.expectOutput(ending.ExitDone, "explain", "--key", key)
		w.expectOutput(ending.ExitDone, "explain", "--json", "--key", key)
	}
	w.expectOutput(ending.ExitInvalid, "explain", "--key", hostile)
	w.expectOutput(ending.ExitDone, "status")
	w.expectOutput(ending.ExitDone, "parked", "list")
	entries := w.parked()
	for _, p := range entries {
		w.expectOutput(ending.ExitDone, "parked", "show", p.ID)
		w.expectOutput(ending.ExitDone, "parked", "show", p.ID, "--json")
	}
	if !slices.ContainsFunc(entries, func(p parked.Entry) bool { return strings.Contains(p.Reason, hostile) && p.ID == "record/1"+hostile }) {
		t.Errorf("as JSON the true text is not among %+q", fmt.Sprint(entries))
	}
	w.expectOutput(ending.ExitInvalid, "parked", "show", "none"+hostile)
	w.expectOutput(ending.ExitFailed, "parked", "retry", "--all")
	w.hostileDrift()
	w.expectOutput(ending.ExitDrift, "verify", "--lag-max", "1ms", "--settle", "1s")
	w.expectOutput(ending.ExitDrift, "verify", "--lag-max", "1ms", "--settle", "1s", "--json")
	w.expectOutput(ending.ExitDone, "replay", "--dry-run")
	w.expectOutput(ending.ExitInvalid, "replay", "--from", "keys://"+keys)
	w.expectOutput(ending.ExitDone, "replay", "--from", "parked")
	w.expectOutput(ending.ExitDone, "replay")
	w.expectOutput(ending.ExitDone, "replay", "--json")
	w.expectOutput(ending.ExitDone, "verify", "--lag-max", "1ms", "--settle", "1s", "--repair")

	other := w.under(changed)
	other.expectOutput(ending.ExitDone, "plan")
	other.expectOutput(ending.ExitDone, "plan", "--json")
	other.expectOutput(ending.ExitInvalid, "run", "--drain")
	other.expectOutput(ending.ExitInvalid, "replay")
	other.expectOutput(ending.ExitDone, "replay", "--yes")
	other.expectOutput(ending.ExitDone, "status", "--json")
	other.expectOutput(ending.ExitDone, "parked", "discard", "--all")
	for _, wrong := range []string{
		strings.ReplaceAll(hostileRules, "attributes:", `"att`+hostileYAML+`":`),
		strings.ReplaceAll(hostileRules, "from: User", `from: "`+hostileYAML+`"`),
		strings.ReplaceAll(hostileRules, "role != ", "role ! \x1b[31m "), hostileRules + "  - \x1b[2J\r\n", hostileRules + "\xff",
	} {
		w.under(w.file("wrong"+hostile+".yaml", wrong)).expectOutput(ending.ExitInvalid, "check")
	}
}

// under is the world under another rule file.
func (w *world) under(rules string) *world {
	other := *w
	other.rules = rules
	return &other
}

func TestDemoDoesNotSteerWhereThereIsNoTerminal(t *testing.T) {
	code, stdout, stderr := command(t, "demo")
	if code != ending.ExitDone {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	expectHarmless(t, "demo", stdout+stderr)
}

func (w *world) read(file string) string {
	w.t.Helper()
	text, err := os.ReadFile(file)
	w.must(err)
	return string(text)
}

// hostileDrift makes what is derived wrong, in ways that no record tells of.
func (w *world) hostileDrift() {
	w.t.Helper()
	rows, err := w.scan(w.table + following.StateSuffix)
	w.must(err)
	forgotten := 0
	for _, row := range rows {
		if pk := row["pk"].Text(); strings.HasPrefix(pk, "i/") || strings.HasPrefix(pk, "ref/") {
			w.forget(w.table+following.StateSuffix, pk, row["sk"].Text())
			forgotten++
		}
	}
	if forgotten < 3 {
		w.t.Errorf("%d rows are deleted, want more", forgotten)
	}
	w.set1("POST#"+hostile, "COMMENT#"+hostile, "userName", "another"+hostile)
	w.set1("GROUP#"+hostile, "METADATA", "memberCount", hostile)
}
