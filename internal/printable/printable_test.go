package printable

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestTextIsReadableAndHarmless(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "plain", "": "", "back\\slash": "back\\slash", "日本 naïve Ünïcödé": "日本 naïve Ünïcödé",
		"e\u0301 is é": "e\u0301 is é", "Ж": "Ж", "हिन्दी": "हिन्दी", "עברית": "עברית",
		"👍🏽 ❤\ufe0f 👨\u200d👩\u200d👧 🇩🇪": "👍🏽 ❤\ufe0f 👨\u200d👩\u200d👧 🇩🇪", "نمی\u200cخواهم": "نمی\u200cخواهم",
		"🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f": "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",

		"\x1b[2J": `\x1b[2J`, "\x1b]0;title\a": `\x1b]0;title\a`, "\u009b31m": `\u009b31m`, "\u009d": `\u009d`, "\x7f": `\x7f`,
		"a\nb\r\nc\td": `a\nb\r\nc\td`, "\u202eabc\u202c": `\u202eabc\u202c`, "\u2066\u2069\u200e\u200f": `\u2066\u2069\u200e\u200f`,
		"\u2028\u2029\u0085": `\u2028\u2029\u0085`, "a\u200bb\ufeffc\u00add\u00a0e": `a\u200bb\ufeffc\u00add\u00a0e`,
		"a\u200db": `a\u200db`, "\u200d": `\u200d`, "x\U000e0041": `x\U000e0041`, "\ue000": `\ue000`,
		"x\xffy": `x\xffy`, "\xe2\x82": `\xe2\x82`, "\xc2\x9b and \x9b": `\u009b and \x9b`, "\ufffd": "\ufffd",
	} {
		if got := Text(text); got != want {
			t.Errorf("Text(%+q) = %+q, want %+q", text, got, want)
		}
	}
	if got, want := Lines("a\n\tb\r\x1b"), "a\n\tb\\r\\x1b"; got != want {
		t.Errorf("Lines = %q, want %q", got, want)
	}
}

func TestWidthLeavesMarksOut(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "é": 1, "e\u0301": 1, "日本": 2} {
		if got := Width(text); got != want {
			t.Errorf("Width(%+q) = %d, want %d", text, got, want)
		}
	}
}

func TestShortenedEndsBetweenCharacters(t *testing.T) {
	x39 := strings.Repeat("x", 39)
	for text, want := range map[string]string{"": "", x39 + "y": x39 + "y", x39 + "yz": x39 + "y...", x39 + "éz": x39 + "..."} {
		if got := Shortened(text); got != want {
			t.Errorf("Shortened(%q) = %q, want %q", text, got, want)
		}
	}
}

// harmless reports whether no character of the text can steer a terminal.
func harmless(text string, keep func(rune) bool) bool {
	if !utf8.ValidString(text) {
		return false
	}
	previous := rune(0)
	for _, r := range text {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) && !keep(r) && !isShown(previous, r) {
			return false
		}
		previous = r
	}
	return true
}

func anyText(t *rapid.T) string {
	odd := rapid.SampledFrom([]string{"\x1b", "\u009b", "\xff", "\xe2", "\x80", "\n", "\r", "\u202e", "\u200d", "👨", "👩", "e\u0301", "a"})
	text := ""
	for _, part := range rapid.SliceOf(rapid.OneOf(odd, rapid.String())).Draw(t, "text") {
		text += part
	}
	return text
}

// However a text is cut into writes, the same is printed.
func TestWriterPrintsWhatLinesShows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := anyText(t) + "\n"
		var out bytes.Buffer
		w := NewWriter(&out)
		for rest := []byte(text); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "bytes")
			if got, err := w.Write(rest[:n]); got != n || err != nil {
				t.Fatalf("wrote %d of %d bytes, %v", got, n, err)
			}
			rest = rest[n:]
		}
		if got := out.String(); got != Lines(text) || !harmless(got, isLayout) {
			t.Errorf("%+q is printed as %+q, want %+q", text, got, Lines(text))
		}
		if got := Text(text); !harmless(got, func(rune) bool { return false }) || Text(got) != got {
			t.Errorf("Text(%+q) = %+q", text, got)
		}
	})
}

func TestJSONWriterKeepsTheTrueText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := string([]rune(anyText(t))) // JSON holds no other
		var out bytes.Buffer
		encoder := json.NewEncoder(NewJSONWriter(&out))
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "\t")
		if err := encoder.Encode(map[string]string{"text": text}); err != nil {
			t.Fatal(err)
		}
		var got map[string]string
		if err := json.Unmarshal(out.Bytes(), &got); err != nil || got["text"] != text || !harmless(out.String(), isLayout) {
			t.Errorf("%+q is printed as %s and read as %+q, %v", text, out.String(), got["text"], err)
		}
	})
}

func TestUnderIsTheWriterBelow(t *testing.T) {
	var out bytes.Buffer
	if Under(NewWriter(&out)) != &out || Under(&out) != &out {
		t.Error("Under is not the writer below")
	}
}
