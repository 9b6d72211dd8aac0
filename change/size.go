package change

// Size returns about how many bytes DynamoDB counts for the value
// (developer guide, "DynamoDB item sizes and formats"): texts by their length,
// numbers by their digits, 3 bytes and 1 a member for lists and maps.
func (v Value) Size() int {
	switch v.kind {
	case KindAbsent:
		return 0
	case KindBool, KindNull:
		return 1
	case KindNumber:
		return len(v.text)/2 + 2
	}
	size := len(v.text)
	for _, m := range v.list {
		size += m.Size()
	}
	for name, f := range v.fields {
		size += len(name) + 1 + f.Size()
	}
	if v.kind == KindList || v.kind == KindMap {
		size += 3 + len(v.list)
	}
	return size
}

// Size returns about how many bytes DynamoDB counts for the item: the names and the values of its attributes.
func (it Item) Size() (size int) {
	for name, v := range it {
		size += len(name) + v.Size()
	}
	return size
}
