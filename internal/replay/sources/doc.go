// Package sources gives the keys of the items that a replay goes over: of a parallel scan, an export to S3, an archive of
// stream records, a list, or of what is parked. A Source divides its keys into pieces, and reads a piece page by page, from
// any cursor. It keeps its part of promise 5: it gives keys only, never images, which may be older than the item.
//
// Damage of a file is an error, never a missing key: IsDamage tells it from a failure that a retry may mend. A torn end,
// which a killed process leaves in an archive, is skipped and counted.
//
// The package imports change and internal rooms. It knows neither the run that works off its pieces, nor rules.
package sources
