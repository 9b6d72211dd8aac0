package sources_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/replay/sources"
)

func keyFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func openKeys(t *testing.T, path string, names sources.KeyNames) *sources.Files {
	t.Helper()
	list, err := sources.OpenKeyList(path, names)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = list.Close() })
	return list
}

func TestAKeyIsReadInEveryForm(t *testing.T) {
	both, one := blogKeys, sources.KeyNames{Partition: "pk"}
	for line, test := range map[string]struct {
		names sources.KeyNames
		want  change.Key
	}{
		`{"pk":"USER#1","sk":"PROFILE"}`:                        {both, change.Key{Partition: "USER#1", Sort: "PROFILE"}},
		`  {"sk": -5.00, "pk": "a/b", "more": [1]} ` + "\r":     {both, change.Key{Partition: "a/b", Sort: "-5"}},
		`{"pk":{"S":"USER#1"},"sk":{"N":"1e2"},"x":{"B":"YQ"}}`: {both, change.Key{Partition: "USER#1", Sort: "100"}},
		`USER#1/PROFILE`:      {both, change.Key{Partition: "USER#1", Sort: "PROFILE"}},
		`a%2Fb%25/ c` + "\r":  {both, change.Key{Partition: "a/b%", Sort: " c"}},
		`USER#1`:              {one, change.Key{Partition: "USER#1"}},
		`{"pk":"{","sk":"x"}`: {one, change.Key{Partition: "{"}},
	} {
		page, err := openKeys(t, keyFile(t, "\n"+line+"\n \n"), test.names).Read(t.Context(), sources.Piece{Name: "keys 1"}, "")
		if err != nil || len(page.Keys) != 1 || page.Keys[0] != test.want || !page.Last {
			t.Errorf("%s: %+v, %v, want %v", line, page, err, test.want)
		}
	}
}

func TestEveryLineThatIsNoKeyIsNamed(t *testing.T) {
	for line, want := range map[string]string{
		`{"pk":"USER#1"}`:                    `it has no key attribute "sk"`,
		`{"pk":"","sk":"a"}`:                 `key attribute "pk": it is empty`,
		`{"pk":true,"sk":"a"}`:               `key attribute "pk": want {"S": "text"} or {"N": "1"}`,
		`{"pk":null,"sk":"a"}`:               `key attribute "pk": want`,
		`{"pk":{"S":"a","N":"1"},"sk":"a"}`:  `want {"S"`,
		`{"pk":{"S":"a"},"sk":{"N":"five"}}`: `"five" is not a number`,
		`{"pk":{"B":"YQ=="},"sk":"a"}`:       `binary`,
		`{"pk":"a","sk":"b"} {}`:             `it is not JSON`,
		`{"pk":"a`:                           `it is not JSON`,
		"{\"pk\":\"\xff\",\"sk\":\"a\"}":     `it is not UTF-8`,
		`USER#1`:                             `want PARTITION/SORT, or {"pk": "PARTITION", "sk": "SORT"}`,
		`USER#1/`:                            `is no key`,
		`/PROFILE`:                           `is no key`,
		`a/b/c`:                              `is not how dynamill prints a key`,
		`100%/b`:                             `is not how dynamill prints a key`,
		"caf\xe9/b":                          `it is not UTF-8`,
		strings.Repeat("p", 2_049) + "/b":    `its partition key has 2049 bytes`,
		"a/" + strings.Repeat("s", 1_025):    `its sort key has 1025 bytes`,
	} {
		_, err := sources.OpenKeyList(keyFile(t, "a/b\n"+line+"\n"), blogKeys)
		var wrong *sources.KeyListError
		if !errors.As(err, &wrong) || wrong.Total != 1 || !strings.HasPrefix(wrong.Problems[0], "line 2: ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	_, err := sources.OpenKeyList(keyFile(t, "a/b"), sources.KeyNames{Partition: "pk"})
	if err == nil || !strings.Contains(err.Error(), "the table has no sort key") {
		t.Errorf("error %v", err)
	}
	_, err = sources.OpenKeyList(keyFile(t, strings.Repeat("wrong\n", 50)), blogKeys)
	if err == nil || !strings.Contains(err.Error(), "50 of its lines are no keys") || !strings.Contains(err.Error(), "line 20: ") ||
		!strings.HasSuffix(err.Error(), "and 30 more") {
		t.Errorf("error %v", err)
	}
	_, err = sources.OpenKeyList(keyFile(t, "a/b\n"+strings.Repeat("x", 9<<20)), blogKeys)
	if err == nil || !strings.Contains(err.Error(), "line 2: it is longer") {
		t.Errorf("error %v", err)
	}
	if _, err := sources.OpenKeyList(filepath.Join(t.TempDir(), "none"), blogKeys); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestALongKeyListIsReadInPiecesAndPages(t *testing.T) {
	var text strings.Builder
	var want []change.Key
	for i := range 20_501 {
		want = append(want, change.Key{Partition: fmt.Sprint("USER#", i), Sort: "x/y"})
		text.WriteString(want[i].String() + "\n")
		if i%1_000 == 0 {
			text.WriteString("\n")
		}
	}
	path := keyFile(t, text.String()+"\n\n")
	lists, turn := []*sources.Files{openKeys(t, path, blogKeys), openKeys(t, path, blogKeys)}, 0 // of two processes
	open := func() sources.Source {
		turn++
		return lists[turn%2]
	}
	pieces, err := open().Pieces(t.Context())
	if diff := cmp.Diff([]sources.Piece{{Name: "keys 1", Items: 10_000}, {Name: "keys 2", Items: 10_000}, {Name: "keys 3", Items: 501}},
		pieces); diff != "" || err != nil {
		t.Errorf("%v, pieces (-want +got):\n%s", err, diff)
	}
	keys, sum := readAll(t, open(), open)
	if diff := cmp.Diff(sortedKeys(want), keys); diff != "" || sum.Items != 20_501 {
		t.Errorf("%d items, keys (-want +got):\n%s", sum.Items, diff)
	}
	for cursor, want := range map[string]string{"x": "is no number", "20000": "has only 10010 lines", "2/00000001": "are not those"} {
		if _, err := open().Read(t.Context(), pieces[1], cursor); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("cursor %q: %v, want %q", cursor, err, want)
		}
	}
	if _, err := open().Read(t.Context(), sources.Piece{Name: "keys 4"}, ""); err == nil {
		t.Error("a piece too many is read")
	}
}

func TestALineMayHoldAWholeItem(t *testing.T) {
	// 400 KB of control characters, each of which is six bytes of JSON
	line := `{"text":{"S":"` + strings.Repeat(`\u0001`, 400<<10) + `"},"pk":{"S":"a"},"sk":{"S":"b"}}`
	keys, _ := readAll(t, openKeys(t, keyFile(t, line+"\nc/d\n"), blogKeys), nil)
	if diff := cmp.Diff([]change.Key{{Partition: "a", Sort: "b"}, {Partition: "c", Sort: "d"}}, keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

func TestAByteOrderMarkIsNoPartOfTheFirstKey(t *testing.T) {
	for _, line := range []string{"a/b", `{"pk":"a","sk":"b"}`} {
		keys, _ := readAll(t, openKeys(t, keyFile(t, "\ufeff"+line+"\r\nc/d\r\n"), blogKeys), nil)
		if diff := cmp.Diff([]change.Key{{Partition: "a", Sort: "b"}, {Partition: "c", Sort: "d"}}, keys); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
	}
}

// TestAKeyListThatIsCutWhileItIsReadIsAnError truncates a list, as a script does that
// writes it anew, before the first page of each piece.
func TestAKeyListThatIsCutWhileItIsReadIsAnError(t *testing.T) {
	path := keyFile(t, strings.Repeat("USER#1/PROFILE\n", 10_001))
	list := openKeys(t, path, blogKeys)
	if err := os.Truncate(path, 15); err != nil {
		t.Fatal(err)
	}
	pieces, err := list.Pieces(t.Context())
	if err != nil || len(pieces) != 2 {
		t.Fatalf("%d pieces, %v", len(pieces), err)
	}
	for _, piece := range pieces {
		if page, err := list.Read(t.Context(), piece, ""); err == nil || !strings.Contains(err.Error(), "it has changed since it was checked") {
			t.Errorf("%s: %d keys, last %v, %v", piece.Name, len(page.Keys), page.Last, err)
		}
	}
}

func TestAKeyListIsRecognisedByItsContent(t *testing.T) {
	path := keyFile(t, "a/b\n")
	before := openKeys(t, path, blogKeys).Describe()
	if again := openKeys(t, path, blogKeys).Describe(); again != before {
		t.Errorf("%q, then %q", before, again)
	}
	if err := os.WriteFile(path, []byte("a/c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if after := openKeys(t, path, blogKeys).Describe(); after == before {
		t.Errorf("another list is described alike: %q", after)
	}
}

func TestStandardInputIsSpooledAndItsCopyRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	list, err := sources.SpoolKeyList(strings.NewReader("a/b\nc/d"), "standard input", blogKeys)
	if err != nil {
		t.Fatal(err)
	}
	keys, _ := readAll(t, list, nil)
	if diff := cmp.Diff([]change.Key{{Partition: "a", Sort: "b"}, {Partition: "c", Sort: "d"}}, keys); diff != "" ||
		!strings.HasPrefix(list.Describe(), "keys in standard input, ") {
		t.Errorf("%q, keys (-want +got):\n%s", list.Describe(), diff)
	}
	if err := list.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := sources.SpoolKeyList(strings.NewReader("wrong"), "standard input", blogKeys); err == nil {
		t.Error("a wrong list is accepted")
	}
	empty, err := sources.SpoolKeyList(strings.NewReader(""), "standard input", blogKeys)
	if err != nil {
		t.Fatal(err)
	}
	if keys, _ := readAll(t, empty, nil); len(keys) != 0 {
		t.Errorf("keys %v", keys)
	}
	if err := empty.Close(); err != nil {
		t.Fatal(err)
	}
	if left := filesIn(t, os.Getenv("TMPDIR")); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
}

// A pipe can be read once only, and a list is read twice.
func TestAKeyListInAPipeIsRefusedAtOnce(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	if _, err := write.WriteString("a/b\n"); err != nil {
		t.Fatal(err)
	}
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := sources.OpenKeyList(fmt.Sprintf("/dev/fd/%d", read.Fd()), blogKeys); err == nil ||
		!strings.Contains(err.Error(), "standard input") {
		t.Errorf("a pipe: %v, want an error that says what to give instead", err)
	}
}
