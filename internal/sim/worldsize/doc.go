// Package worldsize makes simulated worlds smaller under the race detector, which makes them several times slower.
// An access that is not synchronised shows in a small world, too; what only size shows, a run without the detector finds.
// It imports no other room.
package worldsize
