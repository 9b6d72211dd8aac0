package rules_test

import (
	"os"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
)

// TestAFormerFileMayHaveAnyPer reads a file that check refuses now as one that was in force once: what it wrote can be taken back.
func TestAFormerFileMayHaveAnyPer(t *testing.T) {
	file, err := os.ReadFile("testdata/bad/per-without-difference.bad.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rules.Load("rules", file, projections.Kinds); err == nil {
		t.Error("the file is not refused")
	}
	if _, err := rules.LoadFormer("former rules", file, projections.Kinds); err != nil {
		t.Error(err)
	}
}

// TestPerMayNameAPaddedVariable has items with 7 and 07, which have one target.
func TestPerMayNameAPaddedVariable(t *testing.T) {
	const file = `
version: 1
table: { keys: [pk, sk] }
entities:
  Game:  { key: { pk: "GAME#${gameId}", sk: "PLAY#${playId}" } }
  Level: { key: { pk: "LEVEL#${level:03}", sk: "METADATA" } }
rules:
  plays: { count: Game, as: Level.plays, by: { level: level }, per: level }
`
	if _, err := rules.Load("rules", []byte(file), projections.Kinds); err != nil {
		t.Error(err)
	}
	if _, err := rules.Load("rules", []byte(strings.Replace(file, ":03", "", 1)), projections.Kinds); err == nil {
		t.Error("the same without zeros is not refused")
	}
}
