// Package change holds the words that every room shares: Record, Image, Value,
// Key and Position. It knows nothing of AWS clients and imports no other room,
// so that any program can have a Processor for these records.
package change
