// Package table sends the engine's requests to the two tables: the user's, and the state table.
//
// It knows keys, expressions and types of attributes, and no rule: which rows there are, and what
// they say, is package state's. Each request is tried again while that may help, counted, metered
// for the rule that it serves, and kept within a limit of writes. Contend is the loop of all work
// that other writers may undo.
//
// It imports change, rooms of the module that name no engine, and the AWS SDK's DynamoDB client.
package table
