package main

import (
	"strings"
	"testing"
)

func TestTheBoundOfAFanOutIsAWholeNumber(t *testing.T) {
	for text, want := range map[string]int{ // -1: refused
		"": 0, "1": 1, "250": 250, "1000000": 1_000_000,
		"0": -1, "-5": -1, "1000001": -1, "1e3": -1, "+-7": -1, "many": -1, "99999999999999999999": -1,
	} {
		s, err := readSettings(func(name string) string { return map[string]string{"DYNAMILL_FAN_OUT_MAX": text}[name] })
		switch {
		case want >= 0 && (err != nil || s.fanOutMax != want):
			t.Errorf("%q: %d, %v, want %d", text, s.fanOutMax, err, want)
		case want < 0 && (err == nil || !strings.Contains(err.Error(), "DYNAMILL_FAN_OUT_MAX \""+text+"\" is not a whole number from 1 to 1000000")):
			t.Errorf("%q: error %v", text, err)
		}
	}
}
