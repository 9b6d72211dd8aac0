// Package ledger reads, moves and retries the ledger entries of items. An entry holds the effects of
// an item that are in force. One transaction moves it, together with what those effects change: sums,
// locators, parked records and the items that rules make. It takes the writes of sums from groups, and asks
// the kinds of rules for those of items.
package ledger
