package replay_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/internal/replay"
	"github.com/dynamill/dynamill/internal/replay/sources"
)

func listOf(t *testing.T, text string) *sources.Files {
	t.Helper()
	list, err := sources.SpoolKeyList(strings.NewReader(text), "keys.txt", blogKeys)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = list.Close() })
	return list
}

func TestANumberIsTheSameKeyHoweverItIsWritten(t *testing.T) {
	r := newRigOf(t, types.ScalarAttributeTypeN)
	list := listOf(t, `p/5
p/5.0
p/+5e0
{"pk":"p","sk":"05"}
{"pk":"p","sk":5.00}
{"pk":"p","sk":{"S":"5"}}
`)
	if _, err := replay.Run(t.Context(), r.process().config(list)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"rederive p/5": 1}, r.works); diff != "" {
		t.Errorf("worked off (-want +got):\n%s", diff)
	}
}

func TestAKeyThatTheTableCannotHaveIsNamed(t *testing.T) {
	r := newRigOf(t, types.ScalarAttributeTypeN)
	list := listOf(t, "p/1\np/five\n")
	_, err := replay.Run(t.Context(), r.process().config(list))
	if err == nil || !strings.Contains(err.Error(), `p/five is not a key of the table: key attribute sk is a number in the table`) {
		t.Errorf("error %v", err)
	}
}
