// Command lambdazip builds the packages of the Lambda function: for each
// architecture a zip with the executable `bootstrap` and, if one is given, the
// rule file. The same source, Go version and rule file give the same bytes, so
// that a deployment tool sees a change only where there is one. A rule file with
// errors is refused here rather than by the function.
//
// It runs `go build`, and imports of this module the rules only.
package main

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/dynamill/dynamill/rules"
)

const (
	function   = "github.com/dynamill/dynamill/cmd/dynamill-lambda"
	executable = "bootstrap" // what Lambda starts
)

// epoch is every file's time: the earliest that a zip can hold.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

func main() {
	folder := flag.String("o", "bin/lambda", "`folder` of the zips")
	architectures := flag.String("arch", "arm64,amd64", "Go's names of the `architectures`, with commas between")
	ruleFile := flag.String("rules", "", "rule `file` to pack; none if empty")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	for architecture := range strings.SplitSeq(*architectures, ",") {
		file := filepath.Join(*folder, "dynamill-"+architecture+".zip")
		size, err := build(ctx, file, architecture, *ruleFile)
		if err != nil {
			fmt.Fprintln(os.Stderr, "lambdazip:", err)
			os.Exit(1)
		}
		fmt.Printf("%s: %.1f MB, of which bootstrap unpacks to %.1f MB\n", file, megabytes(size.packed), megabytes(size.unpacked))
	}
}

type size struct{ packed, unpacked int }

func megabytes(n int) float64 { return float64(n) / 1e6 }

// build makes one zip.
func build(ctx context.Context, file, architecture, ruleFile string) (size, error) {
	members := []member{{name: executable, mode: 0o755}}
	if filepath.Base(ruleFile) == executable {
		return size{}, fmt.Errorf("the rule file %s cannot be packed under its name, which is the executable's: give it another one", ruleFile)
	}
	if ruleFile != "" {
		src, err := os.ReadFile(ruleFile)
		if err != nil {
			return size{}, fmt.Errorf("reading the rule file: %w", err)
		}
		if _, err := rules.Load(ruleFile, src); err != nil {
			return size{}, err
		}
		members = append(members, member{filepath.Base(ruleFile), 0o644, src})
	}
	program, err := compile(ctx, architecture)
	if err != nil {
		return size{}, err
	}
	members[0].content = program
	packed, err := pack(members)
	if err != nil {
		return size{}, fmt.Errorf("packing %s: %w", file, err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return size{}, err
	}
	return size{len(packed), len(program)}, os.WriteFile(file, packed, 0o644)
}

// compile builds the function so that nothing of this machine is in it: no paths,
// no build id, no revision. The tag leaves out the protocol of a runtime that
// Lambda no longer has, and with it what keeps the linker from dropping unused code.
func compile(ctx context.Context, architecture string) (program []byte, err error) {
	folder, err := os.MkdirTemp("", "lambdazip")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	file := filepath.Join(folder, executable)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags", "lambda.norpc",
		"-ldflags", "-s -w -buildid=", "-o", file, function)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+architecture, "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the function for %s: %w\n%s", architecture, err, out)
	}
	return os.ReadFile(file)
}

type member struct {
	name    string
	mode    fs.FileMode
	content []byte
}

// pack makes a zip of the members, in their order.
func pack(members []member) ([]byte, error) {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, m := range members {
		header := &zip.FileHeader{Name: m.name, Method: zip.Deflate, Modified: epoch}
		header.SetMode(m.mode)
		w, err := archive.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(m.content); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
