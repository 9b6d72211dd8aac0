package check

// Bounds that follow from DynamoDB's own (developer guide, "Expressions" under
// "Constraints": 4 KB for an expression, 300 operators). The engine's longest
// conditions name every attribute of a rule, with two operators for each.
const (
	attributesMax = 100 // attributes that one rule writes, or reads of an item on which it writes
	matchesMax    = 10  // attributes under one entity's match
)

// expireDaysMax is the longest time to live: ten years.
const expireDaysMax = 3650

// widths reports rules and entities with more attributes than DynamoDB's expressions can name.
func (c *checker) widths() {
	for _, r := range c.out.Rules {
		if n := len(r.Writes); n > attributesMax {
			c.Add(r.Decl.Name.At, "rule.too_many_attributes", "split it into several rules",
				"rule %s writes %d attributes; at most %d are allowed, since DynamoDB bounds the length of a condition", r.Decl.Name.Text, n,
				attributesMax)
		}
		if n := len(r.Reads); n > attributesMax && r.Traits.WritesSource() {
			c.Add(r.Decl.Name.At, "rule.too_many_attributes", "split it into several rules",
				"rule %s reads %d attributes; at most %d are allowed, since DynamoDB bounds the length of a condition", r.Decl.Name.Text, n,
				attributesMax)
		}
	}
	for _, e := range c.out.Entities {
		if n := len(e.Equals); n > matchesMax {
			c.Add(e.Decl.Name.At, "entity.too_many_matches", "tell the entity by fewer attributes",
				"items of %s are told by %d attributes; at most %d are allowed", e.Decl.Name.Text, n, matchesMax)
		}
	}
}
