package main

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/internal/printable"
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
		case want < 0 && (err == nil || !strings.Contains(err.Error(),
			"DYNAMILL_FAN_OUT_MAX \""+text+"\" is not a whole number from 1 to 1000000")):
			t.Errorf("%q: error %v", text, err)
		}
	}
}

// What is logged comes from records, and people read logs on terminals.
func TestLogDoesNotSteerTerminals(t *testing.T) {
	const key = "USER#\x1b[2J\u009b31m\u202e\x7f\nFAKE"
	var out strings.Builder
	newLogger(&out, slog.LevelInfo).Info("parked "+key, "item", key)
	var line struct{ Msg, Item string }
	if err := json.Unmarshal([]byte(out.String()), &line); err != nil || line.Item != key || line.Msg != "parked "+key {
		t.Errorf("%q is read as %q, %v", out.String(), line, err)
	}
	if text := strings.TrimSuffix(out.String(), "\n"); printable.Text(text) != text {
		t.Errorf("logged %q", text)
	}
}
