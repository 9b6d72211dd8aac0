package streamapi

// Shard is one shard as the stream lists it.
type Shard struct {
	ID, Parent string // parent is "" if the shard has none
	Start      string // sequence number of its first record; "" if unknown
	Closed     bool   // nothing will be added to it
}

// Place is where in a shard its reading begins.
type Place struct {
	After string // the last record done; "" if none is
	At    string // the first record that is not, if it was seen
	Whole bool   // the shard held its first record when it was found
}
