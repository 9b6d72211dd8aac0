// Package target holds the one way to write an item of the user's table for a rule: which attributes
// are set and taken off, and under which conditions. A write goes into a ledger transaction, or
// alone; a write that DynamoDB refuses for good parks its (item, rule).
package target
