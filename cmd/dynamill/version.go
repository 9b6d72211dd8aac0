package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/commandline"
)

// revisionLength is how much of a revision is shown: enough to find it.
const revisionLength = 12

// build says what this binary was made from.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func currentBuild() build {
	b := build{Version: "(unknown)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b.Revision = setting.Value[:min(revisionLength, len(setting.Value))]
		case "vcs.modified":
			b.Modified = setting.Value == "true"
		}
	}
	return b
}

// Text is the line for people.
func (b build) Text() string {
	text := "dynamill " + b.Version
	if b.Revision != "" {
		text += " " + b.Revision
	}
	if b.Modified {
		text += " (modified)"
	}
	return text + " " + b.Go + " " + b.Platform + "\n"
}

func (a *app) versionCommand() *cobra.Command {
	return newCommand("version", commandline.NoArguments, func(*cobra.Command, []string) error {
		a.out.PrintResult(currentBuild())
		return nil
	})
}
