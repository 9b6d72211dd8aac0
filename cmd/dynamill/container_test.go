package main

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// containerSteps are the instructions of a container file by name, and those of its last stage.
func containerSteps(text string) (all, last map[string][]string) {
	all, last = map[string][]string{}, map[string][]string{}
	for _, step := range instructions(text) {
		if step[0] == "FROM" {
			last = map[string][]string{}
		}
		all[step[0]] = append(all[step[0]], step[1])
		last[step[0]] = append(last[step[0]], step[1])
	}
	return all, last
}

// copied says what the COPY instructions put where.
func copied(steps []string) map[string]string {
	from := map[string]string{}
	for _, step := range steps {
		words := strings.Fields(step)
		for strings.HasPrefix(words[0], "--") {
			words = words[1:]
		}
		for _, source := range words[:len(words)-1] {
			from[source] = words[len(words)-1]
		}
	}
	return from
}

// TestTheContainersPathsAgree follows the binary from where it is built to where
// it is started, and the rules from the example's mount to where they are read:
// no tool that builds images is needed for it.
func TestTheContainersPathsAgree(t *testing.T) {
	const root = "../.."
	text := fileText(t, containerFile)
	all, last := containerSteps(text)

	build := regexp.MustCompile(`go build .*-o (\S+) (\./\S+)`).FindStringSubmatch(strings.Join(all["RUN"], "\n"))
	if build == nil {
		t.Fatalf("no binary is built: RUN %q", all["RUN"])
	}
	if main, err := filepath.Glob(filepath.Join(root, build[2], "main.go")); err != nil || len(main) != 1 {
		t.Errorf("%s, which is built, is no command: %v", build[2], err)
	}
	var entry []string
	if err := json.Unmarshal([]byte(last["ENTRYPOINT"][0]), &entry); err != nil {
		t.Fatal(err)
	}
	target := copied(last["COPY"])
	if target[build[1]] != entry[0] {
		t.Errorf("%s is built and copied to %q, and %s is started", build[1], target[build[1]], entry[0])
	}
	const certificates = "/etc/ssl/certs/ca-certificates.crt" // of Debian, and where crypto/x509 looks first
	if target[certificates] != certificates {
		t.Errorf("the certificates are copied to %q", target[certificates])
	}
	if target["/out/tmp"] != "/tmp" { // without it no temporary file can be made
		t.Errorf("the image has no /tmp: copied are %v", target)
	}
	for source := range copied(all["COPY"]) {
		if path.IsAbs(source) {
			continue // of another stage
		}
		if _, err := os.Stat(filepath.Join(root, source)); err != nil {
			t.Errorf("COPY %s: %v", source, err)
		}
	}

	rules, _, err := (&app{}).rootCommand().Find([]string{"run"})
	if err != nil {
		t.Fatal(err)
	}
	read := path.Join(last["WORKDIR"][0], rules.Flag("rules").DefValue)
	for what, want := range map[string]string{
		"the rules are mounted where they are read": ":" + read + ":ro",
		"the file is where it is said to be":        "-f " + strings.TrimPrefix(filepath.ToSlash(containerFile), root+"/") + " ",
		"the port is the exposed one":               ":" + last["EXPOSE"][0] + " dynamill",
		"the version is an argument":                "--build-arg VERSION=",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s: the example does not hold %q", what, want)
		}
	}
	if !strings.Contains(strings.Join(last["ARG"], "\n"), "VERSION=") {
		t.Errorf("the last stage takes %q, not VERSION", last["ARG"])
	}
	if unit := readUnit(t, fileText(t, unitFile)); unit["Service.KillSignal"] != last["STOPSIGNAL"][0] {
		t.Errorf("the container is stopped by %s, the unit by %s", last["STOPSIGNAL"][0], unit["Service.KillSignal"])
	}
}
