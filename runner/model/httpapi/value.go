package httpapi

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxCount is more tokens than any answer has: what an endpoint says beyond it
// must not overflow a sum.
const maxCount = 1_000_000_000

// A Count is a number of tokens: never negative, never absurd.
type Count int64

// UnmarshalJSON accepts any value; what is no number is 0.
func (c *Count) UnmarshalJSON(data []byte) error {
	if n, ok := Decimal(string(data), 0); ok {
		*c = Count(min(n, maxCount))
	}
	return nil
}

// Decimal is s × 10^shift, rounded half up, for a number that is not negative.
// No float is involved: cost is added up exactly.
func Decimal(s string, shift int) (int64, bool) {
	mantissa, exponent, hasExponent := strings.Cut(strings.ToLower(s), "e")
	if hasExponent {
		e, err := strconv.Atoi(exponent)
		if err != nil || e < -100 || e > 100 {
			return 0, false
		}
		shift += e
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	shift -= len(fraction)
	if spare := len(digits) - 18; spare > 0 { // beyond what int64 holds, and beyond any meaning
		digits, shift = digits[:18], shift+spare
	}
	if digits == "" {
		return 0, strings.Contains(mantissa, "0")
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil {
		return 0, false
	}
	return scale(int64(n), shift)
}

// scale is n × 10^shift, rounded half up.
func scale(n int64, shift int) (int64, bool) {
	for ; shift > 0; shift-- {
		if n > math.MaxInt64/10 {
			return 0, false
		}
		n *= 10
	}
	for ; shift < -1 && n > 0; shift++ {
		n /= 10
	}
	if shift < 0 {
		n = (n + 5) / 10
	}
	return n, true
}

// String is the string that a JSON value is; nothing where it is none.
func String(value []byte) string {
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	inner := value[1 : len(value)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner)
	}
	var s string
	_ = json.Unmarshal(value, &s) // a JSON string: cannot fail
	return s
}
