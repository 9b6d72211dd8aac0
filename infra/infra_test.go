package infra

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden names the file that holds a template of an example's rules.
func golden(format Format, example string) string {
	suffix := ".yaml"
	if format == Terraform {
		suffix = ".tf"
	}
	return filepath.Join("testdata", example, string(format)+suffix)
}

func generate(t testing.TB, format Format, name string, o Options) string {
	t.Helper()
	if o.Table == "" {
		o.Table = name
	}
	made, err := Generate(format, example(t, name), o)
	if err != nil {
		t.Fatal(err)
	}
	return string(made)
}

var exampleNames = []string{"blog", "groups", "likes"}

func TestTemplatesOfTheExamples(t *testing.T) {
	for _, format := range Formats() {
		for _, name := range exampleNames {
			got := []byte(generate(t, format, name, Options{}))
			file := golden(format, name)
			if *update {
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s is not what is made now (go test ./infra -update writes it):\n%s", file, cmp.Diff(string(want), string(got)))
			}
		}
	}
}
