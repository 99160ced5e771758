package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// maxCount is more tokens than any answer has. Larger values from an endpoint are cut, so that sums do not overflow.
const maxCount = 1_000_000_000

// maxCost, a million dollars, is more than any answer costs.
const maxCost = 1_000_000_000_000

// placesUSD are the decimal places between a dollar and a millionth of it.
const placesUSD = 6

// A Count is a number of tokens. Decoding bounds it, and makes it 0 if it is negative.
type Count int64

// UnmarshalJSON accepts any value. A value that is not a number is 0.
func (c *Count) UnmarshalJSON(data []byte) error {
	if n, ok := Decimal(string(data), 0); ok {
		*c = Count(min(n, maxCount))
	}
	return nil
}

// Decimal returns s × 10^shift, rounded half up, for a number that is not negative; false: s is not such a number, or
// the result is too large. No float is involved: cost is added up exactly.
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

// scale returns n × 10^shift, rounded half up.
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

// A Cost is a price in US dollars: a number, a number as text, or an object with
// a total as Perplexity writes it.
type Cost struct {
	MicroUSD int64 // millionths of a dollar
	Known    bool
}

// NewCost returns the cost of n × 10^places millionths of a dollar.
func NewCost(n string, places int) Cost {
	c := Cost{}
	c.MicroUSD, c.Known = Decimal(n, places)
	c.MicroUSD = min(c.MicroUSD, maxCost)
	return c
}

// UnmarshalJSON accepts any value. A value that is not a price is unknown.
func (c *Cost) UnmarshalJSON(data []byte) error {
	if data[0] == '{' {
		var parts struct {
			Total json.Number `json:"total_cost"`
		}
		_ = json.Unmarshal(data, &parts) // what is no total is no price
		data = []byte(parts.Total)
	}
	*c = NewCost(strings.Trim(string(data), `"`), placesUSD)
	return nil
}

// placesTicks are the decimal places between xAI's unit (ten thousand million per dollar) and a millionth of a dollar.
const placesTicks = -4

// Ticks is a price as xAI writes it.
type Ticks Cost

// UnmarshalJSON accepts any value. A value that is not a number is unknown.
func (t *Ticks) UnmarshalJSON(data []byte) error {
	*t = Ticks(NewCost(string(data), placesTicks))
	return nil
}

// Text is a string. Any other value is read as an empty one.
type Text string

// UnmarshalJSON accepts any value.
func (t *Text) UnmarshalJSON(data []byte) error {
	*t = Text(String(data))
	return nil
}

// Unmarshal decodes JSON into v. A value of an unexpected type leaves its field
// empty; only what is not JSON at all is an error.
func Unmarshal(data []byte, v any) error { return IgnoreTypeErrors(jsonv1.Unmarshal(data, v)) }

// IgnoreTypeErrors returns an error of encoding/json unless it is that a value has an
// unexpected type: the decoder continues after it.
func IgnoreTypeErrors(err error) error {
	if _, ok := errors.AsType[*jsonv1.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}

// String returns the string that a JSON value is, and "" for any other value.
func String(value []byte) string {
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	inner := value[1 : len(value)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner)
	}
	text, _ := jsontext.AppendUnquote(nil, value) // the error is of a half of a surrogate pair, or of bytes that are not UTF-8
	return string(text)
}
