package operand

import (
	"math"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
)

func TestComputedNumbersEqualWrittenOnes(t *testing.T) {
	written, computed := Of(change.Number("1.50")), Number(decimal.New(3))
	if !computed.Equal(Of(change.Number("3.0"))) || computed.Equal(written) || computed.Equal(Of(change.String("3"))) {
		t.Error("3 is 3.0, and neither 1.50 nor a string")
	}
	if got, want := written.Plain(), change.Number("1.50"); !got.Equal(want) {
		t.Errorf("plain: %s, want %s", got.Text(), want.Text())
	}
	if got, want := written.Written(), change.Number("1.5"); !got.Equal(want) {
		t.Errorf("written: %s, want %s", got.Text(), want.Text())
	}
	set := Of(change.Set(change.KindNumberSet, []string{"1", "3.00"}))
	if found, ok := computed.In(set); !found || !ok {
		t.Errorf("3 in {1, 3.00}: %t, %t", found, ok)
	}
	if _, ok := computed.In(written); ok {
		t.Error("a number contains nothing")
	}
}

func TestPositionsAreWholeNumbersFromZero(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "2.0": 2, "1e30": math.MaxInt32, "-1": -1, "0.5": -1, "x": -1} {
		got, ok := Of(change.Number(text)).Position()
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%s is position %d, %t; want %d", text, got, ok, want)
		}
	}
}

func TestPartsBeyondTheEndAreMissing(t *testing.T) {
	list, text := Of(change.List([]change.Value{change.String("a")})), Of(change.String("a😀b"))
	if v, ok := list.Part(Number(decimal.New(1))); !ok || !v.Missing() {
		t.Errorf("element 1 of 1: %s, %t", v.Shown(), ok)
	}
	if v, ok := list.Part(text); ok {
		t.Errorf("a field of a list: %s", v.Shown())
	}
	if v, ok := text.Cut(1, 9); !ok || v.Text() != "😀b" {
		t.Errorf("cut from 1: %s, %t", v.Shown(), ok)
	}
	if v, ok := list.Cut(3, 2); !ok || len(v.List()) != 0 {
		t.Errorf("cut from 3: %s, %t", v.Shown(), ok)
	}
}
