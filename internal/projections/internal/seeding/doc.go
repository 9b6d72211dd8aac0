// Package seeding decides which pass over a table comes next until all rules are in force, and ends each
// pass: it marks rules live or retired, and moves the stored cursor. The package above it works off the
// items of a pass.
package seeding
