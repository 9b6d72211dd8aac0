package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/sim/emulator"
)

// clientsVariable names the folder of Node.js modules that has the client libraries.
const clientsVariable = "DYNAMILL_CLIENTS"

const derivedFromPosts = `
rules:
  post-count: { count: Post, as: User.postCount }
  author:     { copy: name as authorName, from: User, to: Post }
  slug:       { set: { slug: "${lower(title)}" }, of: Post }
`

// TestApplicationsOfClientLibrariesSeeDerivedData runs an application of each library beside `run`. docs/clients.md has these rule files.
func TestApplicationsOfClientLibrariesSeeDerivedData(t *testing.T) {
	t.Parallel()
	modules := os.Getenv(clientsVariable)
	if modules == "" && (os.Getenv("DYNAMILL_REQUIRE_ENDPOINT") != "" || os.Getenv("CI") != "") {
		t.Fatalf("%s must name the folder of client libraries that `make test` installs: .tools/clients/node_modules", clientsVariable)
	}
	if modules == "" {
		t.Skipf("%s names no folder of client libraries; `make test` installs them", clientsVariable)
	}
	page, err := os.ReadFile("../../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	for library, heading := range map[string]string{
		"electrodb": "## ElectroDB", "onetable": "## OneTable", "toolbox": "## DynamoDB-Toolbox", "dynamoose": "## Dynamoose",
	} {
		t.Run(library, func(t *testing.T) {
			t.Parallel()
			_, section, _ := strings.Cut(string(page), heading+"\n")
			_, example, _ := strings.Cut(section, "```yaml\n")
			ruleFile, _, found := strings.Cut(example, "```")
			if !found {
				t.Fatalf("docs/clients.md has no rule file under %q", heading)
			}
			w := newEmptyWorld(t, emulator.Local(t))
			w.useRules(ruleFile + derivedFromPosts)
			w.createTable(types.StreamViewTypeNewAndOldImages, change.KindString, change.KindString)
			run, _, stderr := w.command("run")
			w.must(run.Start())
			application := clientApplication(t, library, modules)
			application.Env = append(w.server.Environ(), "CLIENT_TABLE="+w.table, "CLIENT_ENDPOINT="+w.endpoint)
			if out, err := application.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			w.must(run.Process.Signal(syscall.SIGTERM))
			if err := run.Wait(); err != nil {
				t.Errorf("run: %v", err)
			}
			if t.Failed() {
				t.Log(stderr)
			}
			w.expectTrue()
		})
	}
}

// clientApplication is an application of testdata/clients in a folder that has the modules.
func clientApplication(t *testing.T, library, modules string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"application.mjs", library + ".mjs"} {
		text, err := os.ReadFile(filepath.Join("testdata", "clients", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return exec.Command("node", filepath.Join(dir, library+".mjs"))
}
