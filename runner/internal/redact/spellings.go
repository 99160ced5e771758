package redact

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// spellings are the forms in which a secret may appear, none shorter than
// MinSecret.
func spellings(value string) []string {
	values := []string{value}
	// A key file often ends in a newline that the key does not have.
	if trimmed := strings.TrimSpace(value); trimmed != value {
		values = append(values, trimmed)
	}
	var all []string
	for _, v := range values {
		if len(v) < MinSecret {
			continue
		}
		all = append(all, v, url.QueryEscape(v), url.PathEscape(v))
		all = append(all, base64s(v)...)
	}
	for _, s := range slices.Clone(all) {
		all = append(all, escaped(s))
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(s string) bool { return len(s) < MinSecret })
}

// base64s are the encodings of a value, alone and inside of something longer
// ("user:password" of basic authentication): there its letters depend on where
// the value begins modulo three, and those at its ends on its neighbors.
func base64s(v string) []string {
	var all []string
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			padded := make([]byte, shift, shift+len(v))
			padded = append(padded, v...)
			text := enc.EncodeToString(padded)
			begin := (shift*8 + 5) / 6 // the first letter of our bits alone
			end := len(padded) * 8 / 6 // behind the last
			all = append(all, text[begin:end])
		}
		all = append(all, enc.EncodeToString([]byte(v)))
	}
	return append(all, base64.StdEncoding.EncodeToString([]byte(v)), base64.URLEncoding.EncodeToString([]byte(v)))
}

// escaped is s as it stands between the quotes of a JSON string.
func escaped(s string) string {
	quoted, _ := json.Marshal(s) // a string: cannot fail
	return string(quoted[1 : len(quoted)-1])
}
