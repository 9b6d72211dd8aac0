// Package tally holds exactly what sources add up to: a value, how many they are, and the same for each value of `per`.
// The engine, the audit and the count of hot rules share it. It knows numbers, and no rules.
package tally
