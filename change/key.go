package change

import "strings"

// Key is an item's primary key as text: a string key as it is, a number key in
// DynamoDB's normal form. Sort is "" in a table that has no sort key (a sort
// key's value is never empty). Binary keys are not supported.
type Key struct{ Partition, Sort string }

// String returns the key as one text from which ParseKey reads it back:
// partition and sort parted by "/", with "/" and "%" inside them escaped.
func (k Key) String() string {
	if k.Sort == "" {
		return keyEscaper.Replace(k.Partition)
	}
	return keyEscaper.Replace(k.Partition) + "/" + keyEscaper.Replace(k.Sort)
}

var (
	keyEscaper   = strings.NewReplacer("%", "%25", "/", "%2F")
	keyUnescaper = strings.NewReplacer("%25", "%", "%2F", "/")
)

// ParseKey reads what Key.String wrote.
func ParseKey(text string) Key {
	partition, sort, _ := strings.Cut(text, "/")
	return Key{Partition: keyUnescaper.Replace(partition), Sort: keyUnescaper.Replace(sort)}
}
