package streamreader

// shardInfo is one shard as the stream lists it.
type shardInfo struct {
	id, parent string // parent is "" if the shard has none
	start      string // sequence number of its first record; "" if unknown
	closed     bool   // nothing will be added to it
}

// place is where in a shard its reading begins.
type place struct {
	after string // the last record done; "" if none is
	at    string // the first record that is not, if it was seen
	whole bool   // the shard held its first record when it was found
}
