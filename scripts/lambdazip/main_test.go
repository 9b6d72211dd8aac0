package main

import (
	"archive/zip"
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// unpackedMax bounds the function: a larger one takes longer to start.
const unpackedMax = 20_000_000

const groups = "../../examples/groups/dynamill.yaml"

func TestBuildingTwiceGivesTheSameBytes(t *testing.T) {
	var builds [2][]byte
	for i := range builds {
		file := filepath.Join(t.TempDir(), "dynamill.zip")
		// A copy, whose time and folder are others each time.
		src, err := os.ReadFile(groups)
		if err != nil {
			t.Fatal(err)
		}
		ruleFile := filepath.Join(t.TempDir(), "dynamill.yaml")
		if err := os.WriteFile(ruleFile, src, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(ruleFile, time.Time{}, time.Unix(int64(1e9*(i+1)), 0)); err != nil {
			t.Fatal(err)
		}
		s, err := build(t.Context(), file, runtime.GOARCH, ruleFile)
		if err != nil {
			t.Fatal(err)
		}
		if s.unpacked > unpackedMax {
			t.Errorf("bootstrap has %d bytes, more than %d", s.unpacked, unpackedMax)
		}
		if builds[i], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(builds[0], builds[1]) {
		t.Error("the two zips differ")
	}
	archive, err := zip.NewReader(bytes.NewReader(builds[0]), int64(len(builds[0])))
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]fs.FileMode{}
	for _, f := range archive.File {
		modes[f.Name] = f.Mode()
		if !f.Modified.Equal(epoch) {
			t.Errorf("%s is of %s", f.Name, f.Modified)
		}
	}
	if diff := cmp.Diff(map[string]fs.FileMode{"bootstrap": 0o755, "dynamill.yaml": 0o644}, modes); diff != "" {
		t.Errorf("members (-want +got)\n%s", diff)
	}
	packed, err := archive.Open("bootstrap")
	if err != nil {
		t.Fatal(err)
	}
	program, err := io.ReadAll(packed)
	if err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(program, []byte(here)) {
		t.Errorf("bootstrap names the folder %s", here)
	}
}

func TestABrokenRuleFileIsNotPacked(t *testing.T) {
	folder := t.TempDir()
	ruleFile, file := filepath.Join(folder, "bad.yaml"), filepath.Join(folder, "dynamill.zip")
	if err := os.WriteFile(ruleFile, []byte("version: 1\nrulez: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		ruleFile: "rulez", filepath.Join(folder, "none.yaml"): "none.yaml", filepath.Join(folder, "bootstrap"): "the executable's",
	} {
		if _, err := build(t.Context(), file, runtime.GOARCH, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one about %s", err, want)
		}
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("there is a zip")
	}
}
