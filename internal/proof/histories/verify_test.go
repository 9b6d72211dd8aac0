package histories

import (
	"testing"

	"github.com/dynamill/dynamill/internal/proof/adversary"
)

// TestARepairMakesGoodForLostRecords makes sure that verify finds what there is to find.
func TestARepairMakesGoodForLostRecords(t *testing.T) {
	h := schedule{name: "records are lost, and what they would have done is repaired", rules: members, steps: []Step{
		puts(group), puts(membership + ", role=x"), puts("pk=USER#b, sk=GROUP#g, role=y"), {Kind: Befall, Fault: adversary.Skipped},
		{Turns: Rest, Kind: Delete, Items: puts(membership).Items}, {Kind: Befall, Fault: adversary.Skipped},
	}}.history(t)
	h.Verifies = true
	holdsPromises(t, h)
	if o := inBubble(t, h, false); o.Repaired == 0 {
		t.Error("nothing was repaired")
	}
}

// TestDriftIsToldFromLag verifies while a record waits, and when it is lost.
func TestDriftIsToldFromLag(t *testing.T) {
	verified := Step{Kind: Befall, Fault: adversary.Verifying}
	late := schedule{
		name: "somebody verifies while the one who reads is held up", rules: members,
		steps:   []Step{puts(group), puts(membership), verified, {Turns: Rest, Kind: Befall, Fault: adversary.Woke}},
		strikes: []adversary.Strike{holds(`^Process .*USER#a`, 0)},
	}
	holdsPromises(t, late.history(t))

	lost := schedule{
		name: "somebody verifies when a record is lost", rules: members,
		steps: []Step{puts(group), puts(membership), {Kind: Befall, Fault: adversary.Skipped},
			{Turns: Rest, Kind: Befall, Fault: adversary.Verifying}, {Turns: Rest, Kind: Befall, Fault: adversary.Woke}},
	}
	if len(inBubble(t, lost.history(t), false).Drift) == 0 {
		t.Error("what is lost was not called drift")
	}
}
