package infra

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
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

// The zip is looked for where `make lambda` leaves the one for the architecture.
func TestTheZipFitsTheArchitecture(t *testing.T) {
	for architecture, want := range map[string]string{
		"": "bin/lambda/dynamill-arm64.zip", "arm64": "bin/lambda/dynamill-arm64.zip", "x86_64": "bin/lambda/dynamill-amd64.zip",
	} {
		for format, written := range map[Format]string{SAM: "CodeUri: " + want + "\n", Terraform: `= "` + want + "\"\n"} {
			if template := generate(t, format, "groups", Options{Architecture: architecture}); !strings.Contains(template, written) {
				t.Errorf("%s for architecture %q does not hold %q", format, architecture, written)
			}
		}
	}
}

func TestAWrongTableNameIsToldOnce(t *testing.T) {
	_, err := Generate(SAM, example(t, "blog"), Options{Table: "a/b"})
	if err == nil || err.Error() != `the table's name "a/b" is not one that DynamoDB allows` {
		t.Errorf("got %v", err)
	}
	_, err = Generate(SAM, example(t, "blog"), Options{Table: "app", StateTable: "a/b"})
	if err == nil || err.Error() != `the state table's name "a/b" is not one that DynamoDB allows` {
		t.Errorf("got %v", err)
	}
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
