package pace

import "time"

// BurstPart and Take are for the tests outside this package: they open engines, which import it.
const BurstPart = burstPart

func (p *Units) Take(units int) time.Duration { return p.take(units) }
