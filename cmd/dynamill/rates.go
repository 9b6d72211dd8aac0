package main

// checkRates refuses what no --rate and no --read-rate can be.
func checkRates(writeMax int, readMax float64) error {
	switch {
	case writeMax < 0:
		return invalid("--rate %d is negative: give write units per second", writeMax)
	case !(readMax >= 0): // or no number
		return invalid("--read-rate %g is no rate: give read units per second", readMax)
	}
	return nil
}
