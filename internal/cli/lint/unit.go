package lint

import (
	"regexp"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// A unit is a type of the API whose values have a unit. It is recognized by its pattern.
type unit struct {
	pattern string
	must    string
	// write returns the corrected value.
	write func(value string) string
}

var (
	wholeNumber  = regexp.MustCompile(`^[1-9][0-9]{0,6}$`)
	amount       = regexp.MustCompile(`^[0-9]{0,5}[1-9]([.][0-9]{1,6})?$|^[0-9]{1,6}[.][0-9]{0,5}[1-9]$`)
	amountInUSD  = regexp.MustCompile(`^[0-9]+([.][0-9]+)?USD$`)
	patternError = regexp.MustCompile(`should match '(.*)'$`)
)

var units = []unit{
	{`^([0-9]{1,7}(h|m|s))+$`, "must be a duration of at most 720h", func(value string) string {
		if wholeNumber.MatchString(value) {
			return ": write " + value + "s, or 10m for ten minutes"
		}
		return ": write 48h, 1h30m or 90s"
	}},
	{`^[0-9]{1,6}([.][0-9]{1,6})?USD$`, "must be an amount in US dollars", func(value string) string {
		switch {
		case amountInUSD.MatchString(value):
			return " of at most 999999.999999USD, in steps of 0.000001USD"
		case amount.MatchString(value):
			return ": write " + value + "USD"
		default:
			return ": write 1.50USD"
		}
	}},
	{`^[1-9][0-9]{0,11}(k|M|G)?$`, "must be a positive number of tokens", func(string) string { return ": write 500k or 2M" }},
}

// unitOf returns the unit with a pattern, or nil.
func unitOf(pattern string) *unit {
	for i := range units {
		if units[i].pattern == pattern {
			return &units[i]
		}
	}
	return nil
}

// unitOfField returns the unit of the values of a field, or nil.
func unitOfField(at *schema.Structural) *unit {
	if at == nil || at.ValueValidation == nil {
		return nil
	}
	return unitOf(at.ValueValidation.Pattern)
}

// unitMessage returns the message for a value that does not match the pattern of its unit, because the pattern does not
// help users; empty: the error is another one.
func unitMessage(detail, value string) string {
	m := patternError.FindStringSubmatch(detail)
	if m == nil {
		return ""
	}
	u := unitOf(m[1])
	if u == nil {
		return ""
	}
	return u.must + u.write(strings.TrimSpace(value))
}

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
