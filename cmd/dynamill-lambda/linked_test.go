package main

import (
	"bytes"
	"os"
	"testing"
)

// The library's package imports the stream reader for Follow. The linker leaves it out of a program that does
// not call Follow: Go keeps the names of all linked functions in a program, also in one without symbols.
func TestTheProgramHoldsNoStreamReader(t *testing.T) {
	program, err := os.ReadFile(built(t))
	if err != nil {
		t.Fatal(err)
	}
	const module = "github.com/dynamill/dynamill"
	for function, linked := range map[string]bool{
		module + "/internal/projections.(*Engine).Process": true, module + ".NewHandler": true,
		module + ".Follow": false, module + "/internal/streamreader.New": false, module + "/internal/streamreader.(*Reader)": false,
		module + "/internal/replay/archive.Open": false, "dynamodbstreams.(*Client).GetRecords": false,
	} {
		if bytes.Contains(program, []byte(function)) != linked {
			t.Errorf("%s: linked is %v, want %v", function, !linked, linked)
		}
	}
}
