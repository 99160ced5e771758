package lint

import (
	"regexp"
	"strings"
)

// quantityPattern is a part of the pattern by which the API server checks quantities. Its message is the
// pattern, which says nothing to a user.
const quantityPattern = `[numkMGTPE]`

// writtenQuantity matches a number and the first letter of a unit.
var writtenQuantity = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) *([kKmMgGtT])?`)

// quantityMessage returns the message of a value that is no quantity, with the one that it may be meant
// to be: 10Gi for 10GB.
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
