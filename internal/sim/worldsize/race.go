//go:build race

package worldsize

const raceDetector = true
