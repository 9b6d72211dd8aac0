package oracle

import (
	"testing"

	"github.com/dynamill/dynamill/internal/decimal"
)

func TestAGroupIsDelicateIfTheOrderOfItsAmountsMayMatter(t *testing.T) {
	const nines = "99999999999999999999999999999999999999" // 38
	for name, c := range map[string]struct {
		amounts []string
		want    bool
	}{
		"nothing":                        {nil, false},
		"one amount of 38 digits":        {[]string{nines}, false},
		"two of 38 digits":               {[]string{nines, nines}, true},
		"38 digits and none":             {[]string{nines, "0"}, false},
		"small ones":                     {[]string{"1", "2.5", "-1000000"}, false},
		"far apart":                      {[]string{"1e40", "2.5"}, true},
		"great and alike":                {[]string{"1e40", "-1e40", "5e39"}, false},
		"far apart, and taken off again": {[]string{"1e40", "2.5", "-1e40"}, true},
		"small and alike":                {[]string{"1e-125", "7e-125"}, false},
		"too great together":             {[]string{"9e125", "9e125"}, true},
		"37 digits apart":                {[]string{"1e36", "1"}, false},
		"39 digits apart":                {[]string{"1e38", "1"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &span{}
			for _, text := range c.amounts {
				d, err := decimal.Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				s.add(d)
			}
			if got := s.delicate(); got != c.want {
				t.Errorf("delicate: %v, want %v", got, c.want)
			}
		})
	}
}
