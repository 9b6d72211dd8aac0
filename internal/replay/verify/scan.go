package verify

import "github.com/dynamill/dynamill/internal/tablescan"

// Scan is a table that is scanned in parallel segments, consistently.
type Scan = tablescan.Table

// ScanClient is what scanning needs of DynamoDB; *dynamodb.Client satisfies it.
type ScanClient = tablescan.Client

// ReadPace bounds the read units per second of all scans that share it.
type ReadPace = tablescan.Pace

// NewReadPace holds to unitsMax read units per second; it returns nil for 0.
func NewReadPace(unitsMax float64) *ReadPace { return tablescan.NewPace(unitsMax) }
