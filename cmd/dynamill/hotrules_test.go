package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/proof/oracle"
	"github.com/dynamill/dynamill/internal/sim/emulator"
)

const likesRules = `version: 1
table: { keys: [pk, sk] }
entities:
  Post: { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Like: { key: { pk: "POST#${postId}", sk: "LIKE#${userId}" } }
rules:
  likes: { count: Like, as: Post.likes, hot: true }
`

// likesWorld is a table of two posts with likes.
func likesWorld(t *testing.T) *world {
	w := newEmptyWorld(t, emulator.Simulated(t))
	w.useRules(likesRules)
	w.createTable(types.StreamViewTypeNewAndOldImages, change.KindString, change.KindString)
	w.put(item("POST#1", "METADATA"), item("POST#2", "METADATA"))
	for i := range 30 {
		w.put(item(fmt.Sprint("POST#", 1+i%2), fmt.Sprint("LIKE#", i)))
	}
	return w
}

// shown are the likes that a post shows.
func (w *world) shown(post string) string {
	out, err := w.client.GetItem(w.t.Context(), &dynamodb.GetItemInput{TableName: &w.table, Key: keyOf(post, "METADATA")})
	w.must(err)
	return attributes.ItemFromTable(out.Item)["likes"].Text()
}

// expectSays calls the command, and looks for texts in what it prints.
func (w *world) expectSays(code int, texts []string, args ...string) {
	w.t.Helper()
	got, stdout, stderr := w.call(args...)
	if got != code {
		w.t.Errorf("%v: exit code %d, want %d:\n%s%s", args, got, code, stdout, stderr)
	}
	for _, text := range texts {
		if !strings.Contains(stdout+stderr, text) {
			w.t.Errorf("%v does not say %q:\n%s%s", args, text, stdout, stderr)
		}
	}
}

// TestHotRulesFromTheCommandLine takes a hot rule through what users do with it.
func TestHotRulesFromTheCommandLine(t *testing.T) {
	t.Parallel()
	w := likesWorld(t)
	w.expectSays(ending.ExitDone, []string{"hot count", "without hot: 2 WU per change"}, "check")
	w.expectSays(ending.ExitDone, []string{"not looked at: likes"}, "replay", "--dry-run")
	w.expectSays(ending.ExitDone, []string{"`dynamill run` counts every Like", "for likes it scans the table once more"}, "plan")
	w.expectSays(ending.ExitEnvironment, []string{"only a process that reads the stream can count", "start `dynamill run`"}, "replay")
	w.expectSays(ending.ExitInvalid, []string{"--beside-run", "likes (`hot: true`)", "dynamill run --beside-function"}, "infra", "sam")
	w.expectSays(ending.ExitDone, []string{"DYNAMILL_BESIDE_RUN: 'true'"}, "infra", "sam", "--beside-run")
	w.expectSays(ending.ExitInvalid, []string{"--rule has no meaning with --recount"}, "replay", "--recount", "likes", "--rule", "likes")
	w.drain()
	shows := func(post, likes string) {
		t.Helper()
		if got := w.shown("POST#" + post); got != likes {
			t.Errorf("post %s shows %s likes, want %s", post, got, likes)
		}
	}
	shows("1", "15")
	w.expectSays(ending.ExitDone, []string{"likes: items show generation 1, over 1 shard"}, "status")
	w.expectSays(ending.ExitDone, []string{"generation 1, 1 operation", "15 from 15 sources, after 1 operation; up to record"},
		"explain", "--key", "POST#1/METADATA")

	row := "fold/" + oracle.RuleID("likes") + "/1/" + w.status().Incarnation + "/POST#1%2FMETADATA"
	spoiled := item(row, "base")
	spoiled["value"], spoiled["members"], spoiled["ops"] = change.Number("99"), change.Number("99"), change.Number("1")
	spoiled["group"] = change.String("POST#1/METADATA")
	_, err := w.client.PutItem(t.Context(),
		&dynamodb.PutItemInput{TableName: new(w.table + "-dynamill"), Item: attributes.ItemToTable(spoiled)})
	w.must(err)
	found, _ := w.verifies(ending.ExitDrift)
	kinds := map[drift.Kind]string{}
	for _, f := range found {
		kinds[f.Kind] = f.Expected + ", found " + f.Found
	}
	if len(found) != 2 || kinds[drift.Sum] != "15 from 15 sources, found 114 from 114 sources" || kinds[drift.Display] == "" {
		t.Errorf("verify finds %+v", found)
	}
	if _, summary := w.verifies(ending.ExitDone, "--repair"); summary.Repaired == 0 || summary.Unrepaired > 0 {
		t.Errorf("repaired: %+v", summary)
	}
	shows("1", "15")

	w.put(item("POST#1", "LIKE#100"))
	w.expectSays(ending.ExitDone, []string{"likes: to be counted anew by `dynamill run`, which must be running"}, "replay", "--recount",
		"likes")
	w.expectSays(ending.ExitDone, []string{"generation 2 is counted anew"}, "status")
	w.expectSays(ending.ExitUndecided, []string{"rule likes is being counted anew"}, "verify")
	w.expectSays(ending.ExitDone, nil, "run", "--drain", "--beside-function")
	shows("1", "16")
	w.expectSays(ending.ExitDone, []string{"likes: items show generation 2"}, "status")
	w.expectSays(ending.ExitDone, []string{"no drift"}, "verify")
}

// TestVerifyBesideAFunctionTakesNoLagForDrift has a process leave a rule to a function that does not run: what it would apply is in the
// stream, behind the checkpoints of the process.
func TestVerifyBesideAFunctionTakesNoLagForDrift(t *testing.T) {
	t.Parallel()
	w := likesWorld(t)
	w.useRules(likesRules + "  lastLiker: { max: userId, of: Like, as: Post.lastLiker }\n")
	w.drain()
	w.put(item("POST#1", "LIKE#99"))
	w.expectSays(ending.ExitDone, nil, "run", "--drain", "--beside-function")
	if got := w.shown("POST#1"); got != "16" {
		t.Errorf("the post shows %s likes, want 16", got)
	}
	w.expectSays(ending.ExitUndecided, []string{"no checkpoints tell whether they are applied", "--lag-max"}, "verify")
	w.expectSays(ending.ExitDrift, []string{"lastLiker"}, "verify", "--lag-max", "1ms")
	w.expectSays(ending.ExitEnvironment, []string{"--beside-function"}, "run", "--drain")
}
