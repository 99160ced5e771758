package lint

import (
	"regexp"
	"strings"
)

// quantityPattern is a part of the API server's pattern for quantities. Its error message is only the pattern, which
// does not help users.
const quantityPattern = `[numkMGTPE]`

// writtenQuantity matches a number and the first letter of a unit.
var writtenQuantity = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) *([kKmMgGtT])?`)

// quantityMessage returns the message for an invalid quantity, with the likely intended one: 10Gi for 10GB.
func quantityMessage(path, value string) string {
	const must = "must be a quantity: write "
	m := writtenQuantity.FindStringSubmatch(value)
	if name := path[strings.LastIndexByte(path, '.')+1:]; name == "cpu" {
		if m != nil && m[2] == "" {
			return must + m[1]
		}
		return must + "1, or 500m for half a CPU"
	}
	if m == nil || m[2] == "" {
		return must + "10Gi"
	}
	return must + m[1] + strings.ToUpper(m[2]) + "i"
}
