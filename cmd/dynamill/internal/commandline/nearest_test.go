package commandline

import "testing"

func TestNearestLeavesDistantWordsAlone(t *testing.T) {
	names := []string{"check", "run", "replay", "verify"}
	for word, want := range map[string]string{
		"chekc": "check", "Run": "run", "rplay": "replay", "ver": "verify", "verfy": "verify",
		"nonsense": "", "x": "", "": "", "zzz": "",
	} {
		if got := nearest(word, names); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}
