package main

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/commandline"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
)

const (
	unitFile      = "../../infra/run/dynamill.service"
	containerFile = "../../infra/run/Containerfile"
	stopTimeout   = 30 * time.Second // of streamreader.Config, by default
)

// unitKeys are the directives of systemd.unit(5), systemd.service(5),
// systemd.exec(5) and systemd.kill(5) that a unit of ours may use.
var unitKeys = map[string][]string{
	"Unit": {"Description", "Documentation", "Wants", "After", "StartLimitIntervalSec"},
	"Service": {
		"Type", "ExecStart", "EnvironmentFile", "KillSignal", "KillMode", "TimeoutStopSec", "Restart", "RestartSec", "RestartPreventExitStatus",
		"DynamicUser", "NoNewPrivileges", "CapabilityBoundingSet", "AmbientCapabilities", "ProtectSystem", "ProtectHome", "PrivateTmp",
		"PrivateDevices", "ProtectClock", "ProtectHostname", "ProtectKernelLogs", "ProtectKernelModules", "ProtectKernelTunables",
		"ProtectControlGroups", "ProtectProc", "RestrictAddressFamilies", "RestrictNamespaces", "RestrictRealtime", "RestrictSUIDSGID",
		"LockPersonality", "MemoryDenyWriteExecute", "SystemCallArchitectures", "SystemCallFilter", "SystemCallErrorNumber", "UMask",
	},
	"Install": {"WantedBy"},
}

func fileText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// readUnit reads a unit file: "Section.Key" to value.
func readUnit(t *testing.T, text string) map[string]string {
	t.Helper()
	unit, section := map[string]string{}, ""
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			continue
		case strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]"):
			section = strings.Trim(line, "[]")
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || !slices.Contains(unitKeys[section], key) {
			t.Errorf("line %d: %q is no directive of [%s]", i+1, line, section)
		}
		if _, twice := unit[section+"."+key]; twice {
			t.Errorf("line %d: %s is given twice", i+1, key)
		}
		unit[section+"."+key] = value
	}
	return unit
}

// expectCommandLine checks that the command takes these arguments.
func expectCommandLine(t *testing.T, args []string) {
	t.Helper()
	cmd, rest, err := (&app{}).rootCommand().Find(args)
	if err != nil || cmd.Name() != "run" {
		t.Fatalf("%q is no call of run: %v", args, err)
	}
	if err := cmd.ParseFlags(rest); err != nil {
		t.Errorf("%q: %v", args, err)
	}
	if left := cmd.Flags().Args(); len(left) > 0 {
		t.Errorf("%q: %q are no flags", args, left)
	}
}

func TestTheSystemdUnitFitsTheCommand(t *testing.T) {
	unit := readUnit(t, fileText(t, unitFile))
	call := strings.Fields(unit["Service.ExecStart"])
	if len(call) < 2 || call[0] != "/usr/local/bin/dynamill" {
		t.Fatalf("ExecStart is %q", call)
	}
	expectCommandLine(t, call[1:])
	if seconds, err := strconv.Atoi(unit["Service.TimeoutStopSec"]); err != nil ||
		time.Duration(seconds)*time.Second < stopTimeout+10*time.Second {
		t.Errorf("TimeoutStopSec is %q: the batch in hand may take %s", unit["Service.TimeoutStopSec"], stopTimeout)
	}
	for key, want := range map[string]string{
		"Unit.StartLimitIntervalSec":       "0",
		"Service.KillSignal":               "SIGTERM",
		"Service.Restart":                  "on-failure",
		"Service.RestartPreventExitStatus": strconv.Itoa(ending.ExitInvalid),
		"Service.DynamicUser":              "yes",
		"Service.NoNewPrivileges":          "yes",
		"Install.WantedBy":                 "multi-user.target",
	} {
		if unit[key] != want {
			t.Errorf("%s is %q, want %q", key, unit[key], want)
		}
	}
}

// instructions are the lines of a container file, those that go on put together.
func instructions(text string) (found [][2]string) {
	var kept []string
	for line := range strings.SplitSeq(text, "\n") {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			kept = append(kept, line)
		}
	}
	for line := range strings.SplitSeq(strings.ReplaceAll(strings.Join(kept, "\n"), "\\\n", " "), "\n") {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			found = append(found, [2]string{name, strings.TrimSpace(value)})
		}
	}
	return found
}

func TestTheContainerIsOneStaticBinaryThatIsNotRoot(t *testing.T) {
	text := fileText(t, containerFile)
	last := map[string]string{} // instructions of the last stage
	built := ""
	for _, one := range instructions(text) {
		switch name, value := one[0], one[1]; name {
		case "FROM":
			last = map[string]string{"FROM": value}
		case "RUN":
			if last["FROM"] == "scratch" {
				t.Errorf("RUN %s in an image without a shell", value)
			}
			built += value + "\n"
		case "ARG", "WORKDIR", "COPY", "LABEL", "USER", "ENV", "EXPOSE", "ENTRYPOINT", "CMD", "STOPSIGNAL":
			last[name] = strings.TrimSpace(last[name] + " " + value)
		default:
			t.Errorf("%s is no instruction that we use", name)
		}
	}
	if last["FROM"] != "scratch" || !strings.Contains(built, "CGO_ENABLED=0 go build") ||
		!strings.Contains(last["COPY"], "ca-certificates.crt") {
		t.Errorf("not one static binary with the certificates of AWS's names: FROM %s, COPY %s, RUN %s", last["FROM"], last["COPY"], built)
	}
	if !regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`).MatchString(last["USER"]) {
		t.Errorf("USER %q is not a number other than 0", last["USER"])
	}
	for _, label := range []string{"title", "description", "source", "documentation", "licenses", "version"} {
		if !strings.Contains(last["LABEL"], "org.opencontainers.image."+label+"=") {
			t.Errorf("no label %s", label)
		}
	}
	var entry, arguments []string
	if err := json.Unmarshal([]byte(last["ENTRYPOINT"]), &entry); err != nil || len(entry) != 1 {
		t.Errorf("ENTRYPOINT %s: %v", last["ENTRYPOINT"], err)
	}
	if err := json.Unmarshal([]byte(last["CMD"]), &arguments); err != nil {
		t.Errorf("CMD %s: %v", last["CMD"], err)
	}
	expectCommandLine(t, arguments)
	environment := map[string]string{}
	for _, setting := range strings.Fields(last["ENV"]) {
		name, value, _ := strings.Cut(setting, "=")
		environment[name] = value
	}
	flags, err := configured(t, "", environment, "run")
	if err != nil {
		t.Error(err)
	}
	if listen := flags.Lookup("listen").Value.String(); listen != ":"+last["EXPOSE"] {
		t.Errorf("listens at %q, and %s is exposed", listen, last["EXPOSE"])
	}
	for name := range environment {
		known := false
		for flag := range commandline.FlagsOf((&app{}).rootCommand()) {
			known = known || commandline.VariableOf(flag) == name
		}
		if !known {
			t.Errorf("ENV %s is the variable of no flag", name)
		}
	}
	language := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(fileText(t, "../../go.mod"))
	if !strings.Contains(text, "ARG GO_VERSION="+language[1]+"\n") {
		t.Errorf("the image is not built with Go %s", language[1])
	}
}
