// Package build says what this binary was made from. It imports the standard library only.
package build

import (
	"runtime"
	"runtime/debug"
)

// revisionLength is how much of a revision is shown: enough to find it.
const revisionLength = 12

// Build says what this binary was made from.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Current is what this binary was made from.
func Current() Build {
	b := Build{Version: "(unknown)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
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
func (b Build) Text() string { return b.Words() + "\n" }

// Words is the line without its end.
func (b Build) Words() string {
	text := "dynamill " + b.Version
	if b.Revision != "" {
		text += " " + b.Revision
	}
	if b.Modified {
		text += " (modified)"
	}
	return text + " " + b.Go + " " + b.Platform
}
