package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/preview"
	"github.com/dynamill/dynamill/internal/sim/emulator"
)

func TestCheckOfATableSaysWhichItemsMatch(t *testing.T) {
	w := newWorld(t, "")
	if code, stdout, stderr := w.call("check"); code != ending.ExitDone || stderr != "" ||
		!strings.Contains(stdout, "table "+w.table+" holds no items yet") {
		t.Fatalf("an empty table: exit code %d\n%s%s", code, stdout, stderr)
	}
	w.put(item("USER#1", "PROFILE"), item("USER#2", "PROFILE", "name", "Ann"), item("USER#1", "GROUP#1"), item("GROUP#1", "METADATA"),
		item("post#1", "metadata"), item("post#1", "comment#1#\x1b[31m"))
	code, stdout, stderr := w.call("check")
	if code != ending.ExitDone {
		t.Fatalf("exit code %d:\n%s", code, stderr)
	}
	for _, want := range []string{
		"all 6 items read, for ",
		"\nENTITY      ITEMS  KEY\nUser        2      USER#${userId} / PROFILE\nPost        0      POST#${postId} / METADATA\n",
		"\nMembership  1 ", "\nMember      0 ", "\n(none)      2\n",
		"keys of items of no entity, such as:\n", "\n  post#1/metadata\n", `  post#1/comment#1#\x1b[31m` + "\n",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the result lacks %q:\n%s", want, stdout)
		}
	}
	for _, want := range []string{
		"warning: entity.unmatched: none of 6 sampled items is a Post, which comment-count reads or writes\n    hint: compare its keys, " +
			"POST#${postId} / METADATA, with the table's: ",
		"warning: attribute.unseen: none of 2 sampled items of User has the attribute avatar, which comment-author reads\n",
		"none of 6 sampled items is a Comment, which comment-author, comment-count, user-comments read or write\n",
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("the warnings lack %q:\n%s", want, stderr)
		}
	}
	if strings.Contains(stderr, "Member,") || strings.Contains(stderr, "User,") || strings.Contains(stderr, "of User has the attribute name") {
		t.Errorf("a warning too many:\n%s", stderr)
	}

	code, stdout, stderr = w.call("check", "--json")
	var result preview.CheckResult
	if err := json.Unmarshal([]byte(stdout), &result); err != nil || code != ending.ExitDone || stderr != "" {
		t.Fatalf("exit code %d, %v:\n%s", code, err, stderr)
	}
	table := result.Table
	if table.Table != w.table || table.Sampled != 6 || !table.Whole || table.Unmatched.Items != 2 || len(table.Unmatched.Examples) != 2 ||
		len(table.Entities) != 6 || table.Entities[0].Items != 2 || len(result.Warnings) < 3 || result.Warnings[0].Code != "entity.unmatched" {
		t.Errorf("as JSON: %s", stdout)
	}
}

func TestCheckOfATableComparesItsKeys(t *testing.T) {
	w := newWorld(t, "")
	w.must(os.WriteFile(w.rules, []byte(strings.NewReplacer("pk", "PK", "sk", "SK").Replace(communityRules)), 0o600))
	if code, stdout, stderr := w.call("check"); code != ending.ExitEnvironment || stdout != "" ||
		!strings.Contains(stderr, "[pk, sk], but the rule file says [PK, SK]") {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
	w = newEmptyWorld(t, emulator.Simulated(t))
	w.table += "-numbers"
	w.useRules(communityRules)
	w.createTable("", change.KindString, change.KindNumber)
	if code, _, stderr := w.call("check"); code != ending.ExitInvalid || !strings.Contains(stderr, "template.number") {
		t.Errorf("with a number key: exit code %d:\n%s", code, stderr)
	}
	w.table = "there-is-no-such-table"
	if code, _, stderr := w.call("check"); code != ending.ExitEnvironment || !strings.Contains(stderr, "does not exist") {
		t.Errorf("without a table: exit code %d:\n%s", code, stderr)
	}
}

func TestWarningsAreLoggedOnce(t *testing.T) {
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.useRules(strings.ReplaceAll(communityRules, `"POST#`, `"$app#POST#`))
	const warning = "$app is a constant here"
	for _, args := range [][]string{{"plan"}, {"run", "--drain", "--drain-timeout", "2m"}, {"plan"}, {"replay"},
		{"verify", "--settle", "1s", "--wait", "2s"}} {
		code, stdout, stderr := w.call(args...)
		if code != ending.ExitDone || strings.Count(stderr, warning) != 1 || strings.Contains(stdout, warning) {
			t.Errorf("%v ended with exit code %d and said:\n%s%s", args, code, stdout, stderr)
		}
	}
}
