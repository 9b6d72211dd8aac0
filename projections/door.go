package projections

import (
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/projections/internal/sightings"
	"github.com/dynamill/dynamill/projections/internal/state"
	"github.com/dynamill/dynamill/projections/internal/table"
)

// StampPrefix begins the name of every attribute in which the engine leaves a stamp.
const StampPrefix = plan.StampPrefix

// Names that callers of the engine need of its rooms.
type (
	// Client is what the engine needs of DynamoDB; *dynamodb.Client satisfies it.
	Client = table.Client
	// InspectClient is what Inspect needs of DynamoDB: reading. *dynamodb.Client satisfies it.
	InspectClient = table.InspectClient
	// Limiter holds writes back.
	Limiter = table.Limiter
	// SetupError says that the engine cannot start as things are around it.
	SetupError = table.SetupError
	// MissingTargets says of one rule at which items its sources point although they do not exist.
	MissingTargets = state.MissingTargets
	// OtherCase is a target that does not exist, and one that does and differs in letter case alone.
	OtherCase = state.OtherCase
	// Matches counts the items and records that an engine or an audit looked at, by their entities.
	Matches = sightings.Matches
	// EntityMatches counts the items and records of one entity.
	EntityMatches = sightings.EntityMatches
	// CaseMismatch is an attribute whose text differs in letter case alone from what rules compare it with.
	CaseMismatch = sightings.CaseMismatch
	// RecordedMissing is what the state table says of one rule's missing targets.
	RecordedMissing = state.RecordedMissing
)
