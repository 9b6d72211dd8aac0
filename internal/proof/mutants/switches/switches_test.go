package switches

import "testing"

func TestWithoutTurnsOffOneGuardUntilItReturns(t *testing.T) {
	Without("One", func() {
		if !Off("One") || Off("Two") {
			t.Errorf("One off: %v, Two off: %v", Off("One"), Off("Two"))
		}
		if got := Condition("Two", "a = b"); got != "a = b" {
			t.Errorf("the condition of a guard in place is %q", got)
		}
		if got := Condition("One", "a = b"); got != "(a = b OR attribute_not_exists(nobodyHasThis))" {
			t.Errorf("the condition of a guard that is off is %q", got)
		}
		InForce(func() {
			if Off("One") {
				t.Error("One is off within InForce")
			}
		})
		if !Off("One") {
			t.Error("One is in force after InForce")
		}
	})
	if Off("One") {
		t.Error("One is off after Without")
	}
}
