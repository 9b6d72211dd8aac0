package pace

// BurstPart is for the tests outside this package: they open engines, which import it.
const BurstPart = burstPart
