package rules_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
)

func TestBadFilesAreRefusedInTheWordsOfTheirGoldenFiles(t *testing.T) {
	files, _ := filepath.Glob("testdata/bad/*.bad.yaml")
	if len(files) < 45 {
		t.Fatalf("%d bad files", len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".bad.yaml"), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, err = rules.Load("dynamill.yaml", src, projections.Kinds)
			var problems *rules.Problems
			if !errors.As(err, &problems) || len(problems.List) == 0 {
				t.Fatalf("got %v, want problems", err)
			}
			compareGolden(t, strings.TrimSuffix(file, ".bad.yaml")+".golden", err.Error()+"\n")
		})
	}
}
