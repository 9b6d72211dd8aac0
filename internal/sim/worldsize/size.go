package worldsize

// Of returns size, or small under the race detector.
func Of(size, small int) int {
	if raceDetector {
		return small
	}
	return size
}
