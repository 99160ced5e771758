package v1alpha1

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Money is an exact amount in US dollars with its currency: 1.50USD. It needs no quotes in
// YAML. A number without currency is refused.
//
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:Pattern="^[0-9]{1,6}([.][0-9]{1,6})?USD$"
// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,6}([.][0-9]{1,6})?USD$')",messageExpression="'must be an amount in US dollars' + (self.matches('^[0-9]+([.][0-9]+)?USD$') ? ' of at most 999999.999999USD, in steps of 0.000001USD' : ': write ' + (self.matches('^[0-9]{1,6}([.][0-9]{1,6})?$') ? self + 'USD' : '1.50USD'))"
type Money string

// MicroUSD returns the amount in millionths of a US dollar.
func (m Money) MicroUSD() (int64, error) {
	digits, found := strings.CutSuffix(string(m), "USD")
	whole, fraction, _ := strings.Cut(digits, ".")
	if !found || whole == "" || len(whole) > 6 || len(fraction) > 6 {
		return 0, fmt.Errorf("reading %q as money: write 1.50USD", string(m))
	}
	micro, err := strconv.ParseUint(whole+(fraction + "000000")[:6], 10, 63)
	if err != nil {
		return 0, fmt.Errorf("reading %q as money: write 1.50USD", string(m))
	}
	return int64(micro), nil
}

// Tokens is a number of tokens: an integer, or one with the suffix k, M or G for thousands,
// millions or billions.
//
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:Pattern="^[1-9][0-9]{0,11}(k|M|G)?$"
type Tokens string

// Count returns the number of tokens.
func (t Tokens) Count() (int64, error) {
	digits, factor := string(t), int64(1)
	for suffix, f := range map[string]int64{"k": 1e3, "M": 1e6, "G": 1e9} {
		if d, found := strings.CutSuffix(digits, suffix); found {
			digits, factor = d, f
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 1 || n > (1<<62)/factor {
		return 0, fmt.Errorf("reading %q as a number of tokens: write 500k or 2M", string(t))
	}
	return n * factor, nil
}

// UnmarshalJSON accepts a number or a string.
func (t *Tokens) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte(`"`)) {
		var s string
		if err := json.Unmarshal(data, &s); err != nil {
			return err
		}
		*t = Tokens(s)
		return nil
	}
	var n int64
	if err := json.Unmarshal(data, &n); err != nil {
		return err
	}
	*t = Tokens(strconv.FormatInt(n, 10))
	return nil
}

// MarshalJSON writes a number where there is no suffix.
func (t Tokens) MarshalJSON() ([]byte, error) {
	if n, err := strconv.ParseInt(string(t), 10, 64); err == nil {
		return strconv.AppendInt(nil, n, 10), nil
	}
	return json.Marshal(string(t))
}

// Duration is a length of time in hours, minutes and seconds: 48h, 1h30m, 90s. A number without
// unit is refused.
//
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:Pattern="^([0-9]{1,7}(h|m|s))+$"
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,7}(h|m|s))+$') && duration(self) <= duration('720h')",messageExpression="'must be a duration of at most 720h: write ' + (self.matches('^[1-9][0-9]{0,6}$') ? self + 's, or 10m for ten minutes' : '48h, 1h30m or 90s')"
type Duration string

// Value returns the duration.
func (d Duration) Value() (time.Duration, error) {
	v, err := time.ParseDuration(string(d))
	if err != nil {
		return 0, fmt.Errorf("reading %q as a duration: write 48h, 1h30m or 90s", string(d))
	}
	return v, nil
}

// Decimal is a decimal number. Its digits are sent to the provider as they are written, without
// binary rounding.
//
// +kubebuilder:validation:Type=number
type Decimal string

// UnmarshalJSON keeps the digits.
func (d *Decimal) UnmarshalJSON(data []byte) error {
	var n json.Number
	if err := json.Unmarshal(data, &n); err != nil {
		return err
	}
	*d = Decimal(n)
	return nil
}

// MarshalJSON writes the digits.
func (d Decimal) MarshalJSON() ([]byte, error) {
	return json.Marshal(json.Number(d))
}
