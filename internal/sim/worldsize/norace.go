//go:build !race

package worldsize

const raceDetector = false
