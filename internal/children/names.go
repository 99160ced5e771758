package children

import (
	"strings"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// MaxName is the most characters of the name of a Run.
const MaxName = 63

// HashedName returns a name with the first digits of a hash of what is unique about the
// Run. It cuts the name if both do not fit.
func HashedName(name, unique string, digits int) string {
	hash := "-" + task.Hash([]byte(unique))[:digits]
	return strings.TrimRight(name[:min(len(name), MaxName-len(hash))], "-.") + hash
}
