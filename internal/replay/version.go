package replay

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/dynamill/dynamill/internal/rules"
)

const versionBytes = 6

// VersionOf digests what rules mean and what they are called, for Config.Version:
// processes that are to share a replay give the same one.
func VersionOf(set *rules.Set) string {
	h := sha256.New()
	for _, rule := range set.Rules {
		fmt.Fprintf(h, "%q %q\n", rule.Name, rule.Fingerprint)
	}
	return hex.EncodeToString(h.Sum(nil)[:versionBytes])
}
