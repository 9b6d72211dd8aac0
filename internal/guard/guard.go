// Package guard names the guards that keep the promises, so that the proof can
// turn each one off and see that a history then fails. A guard that can be
// turned off unnoticed is not proved.
//
// Only a build with the tag `teeth` has the switches. In every other build Off
// is false for the compiler, and nothing of them is left in the program.
package guard

// Guard is one precaution against crashes, repetition, reordering, sleepers or
// other writers.
type Guard uint8

// The guards, by what they belong to.
const (
	// The ledger.
	LedgerEffects   Guard = iota // an entry is swapped only if it holds the effects that the old image says
	LedgerPosition               // an entry is swapped only for a later position
	LateRaised                   // an item rederived for a record goes to the record's position
	LedgerExact                  // a rederived entry is swapped only if nobody moved it
	EntryNew                     // and made only if there is none
	Tombstone                    // an item without effects leaves an entry
	EntryBeforeItem              // rederiving reads the entry before the item
	StepPosition                 // a step of a large move keeps the entry's position
	RecordByRecord               // records are classified one by one, before runs are compacted
	PositionPadded               // sequence numbers are compared as integers
	PositionLabel                // positions of a later stream are later
	// Aggregates.
	DueMark        // a group of which no image tells is marked due with the change
	DueMarkStays   // a due mark is cleared only if its entry has not moved since
	DueMarkRead    // an entry with a due mark is not swapped unseen
	RollupVersion  // a display is not overwritten by an earlier sum
	LocatorVersion // a change of the locator makes a display later
	LoserHidden    // an item that loses its unique value to another shows nothing
	ShownWhenLive  // nothing is shown before the rule is seeded
	LiveAsked      // what was planned before a rule went live is done again
	SuffixesKept   // every write suffix that was ever used is added up
	LateTouch      // aggregates that the images of late records name are rolled up
	// Copies.
	ParentRaised      // the parent's position is raised before the fan-out
	ParentHigher      // a parent is not taken back to an earlier position
	ParentPosition    // the parent's position is read before the parent
	ReferenceFirst    // the reference is put before the parent is read
	ReferencePosition // a reference is put and dropped by position only
	PrunePosition     // a reference is pruned only as it was read
	ChildUnmoved      // a copy is written only if the child's stamp and reference are as they were read
	CopyVersion       // a later state of the parent is not overwritten
	LateParentRaised  // so does a parent, before its children are filled
	TaskUnmoved       // a task is saved and ended only as it was read
	TaskLater         // a task leaves children alone that have its position, in whatever state
	// Mirrors.
	Claims        // contested mirror items keep the set of their claims
	ClaimsUnmoved // a claims item is changed only as it was read
	MirrorAdopted // a mirror item that the engine did not make is not deleted
	MirrorPlace   // a mirror item is written only where its place is as it was taken to be
	// Stamps.
	StampContext  // a stamp counts on its own item only
	StampDigest   // a stamp over other values counts as overwritten
	InsertForeign // an insertion is never our own write
	// Targets and keys.
	TargetExists // nothing is written to an item that is not there
	StillGroup   // a display found by a unique value is written only while the item has that value
	ParkedAsSeen // a child is parked, or cleared, only as it was read
	KeyParsed    // a key that was rendered is parsed again
	// Everything.
	ConsistentReads // reads are strongly consistent
	EpochChecked    // who knows older rules stops
	HealBound       // who fights for an attribute wins in the end
	SeedCursor      // seeding goes on only from where it stands
	// Changes of the rules.
	RuleFingerprint // a rule that means something else is another rule
	IdsKept         // the id of a former rule is never used again
	LateLeftover    // what a worker of older rules writes late is taken back by its record
	RetiredStays    // a mirror item of a former rule stays where a rule in force has it
	// The stream.
	ParentShardFirst // a shard is read after its parent
	Frontier         // a checkpoint never passes a record that is not done
	CheckpointFenced // a checkpoint is written only by the owner that the row names, at the counter that it knows
	TrustWindow      // a worker stops before its lease can be taken
	LeaseKept        // the row of a finished shard is deleted only after its children have begun
	guardCount
)

var names = [guardCount]string{
	"LedgerEffects",
	"LedgerPosition",
	"LateRaised",
	"LedgerExact",
	"EntryNew",
	"Tombstone",
	"EntryBeforeItem",
	"StepPosition",
	"RecordByRecord",
	"PositionPadded",
	"PositionLabel",
	"DueMark",
	"DueMarkStays",
	"DueMarkRead",
	"RollupVersion",
	"LocatorVersion",
	"LoserHidden",
	"ShownWhenLive",
	"LiveAsked",
	"SuffixesKept",
	"LateTouch",
	"ParentRaised",
	"ParentHigher",
	"ParentPosition",
	"ReferenceFirst",
	"ReferencePosition",
	"PrunePosition",
	"ChildUnmoved",
	"CopyVersion",
	"LateParentRaised",
	"TaskUnmoved",
	"TaskLater",
	"Claims",
	"ClaimsUnmoved",
	"MirrorAdopted",
	"MirrorPlace",
	"StampContext",
	"StampDigest",
	"InsertForeign",
	"TargetExists",
	"StillGroup",
	"ParkedAsSeen",
	"KeyParsed",
	"ConsistentReads",
	"EpochChecked",
	"HealBound",
	"SeedCursor",
	"RuleFingerprint",
	"IdsKept",
	"LateLeftover",
	"RetiredStays",
	"ParentShardFirst",
	"Frontier",
	"CheckpointFenced",
	"TrustWindow",
	"LeaseKept",
}

// String is the guard's name.
func (g Guard) String() string { return names[g] }

// All are all guards.
func All() []Guard {
	all := make([]Guard, guardCount)
	for i := range all {
		all[i] = Guard(i)
	}
	return all
}
