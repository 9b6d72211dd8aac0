// Package guard names the guards of the stream that keep the promises, so that the
// proof can turn each one off and see that a history then fails. The other guards
// stand in internal/proof/mutants.
//
// Only a build with the tag `teeth` has the switches. In every other build Off
// is false for the compiler, and nothing of them is left in the program.
package guard

// Guard is one precaution against crashes, repetition, reordering, sleepers or
// other writers.
type Guard uint8

// The guards of the stream.
const (
	ParentShardFirst Guard = iota // a shard is read after its parent
	Frontier                      // a checkpoint never passes a record that is not done
	CheckpointFenced              // a checkpoint is written only by the owner that the row names, at the counter that it knows
	TrustWindow                   // a worker stops before its lease can be taken
	LeaseKept                     // the row of a finished shard is deleted only after its children have begun
	guardCount
)

var names = [guardCount]string{
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
