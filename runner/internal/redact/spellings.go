package redact

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// spellings returns the forms in which a secret may appear, none shorter than MinSecret. Some may be listed twice.
func spellings(value string) []string {
	var all []string
	// A key file often ends in a newline that the key does not have.
	for _, v := range []string{value, strings.TrimSpace(value)} {
		if len(v) < MinSecret {
			continue
		}
		all = append(all, v)
		all = append(all, inURLs(v)...)
		all = append(all, base64s(v)...)
	}
	for _, s := range slices.Clone(all) {
		all = append(all, escaped(s))
	}
	return slices.DeleteFunc(all, func(s string) bool { return len(s) < MinSecret })
}

// inURLs returns the encodings of a value in a URL. Some programs write a blank of a query as %20, or the digits
// of escapes in lower case.
func inURLs(v string) []string {
	query := url.QueryEscape(v)
	all := []string{query, strings.ReplaceAll(query, "+", "%20"), url.PathEscape(v)}
	for _, s := range slices.Clone(all) {
		parts := strings.Split(s, "%")
		for i := 1; i < len(parts); i++ {
			parts[i] = strings.ToLower(parts[i][:2]) + parts[i][2:]
		}
		all = append(all, strings.Join(parts, "%"))
	}
	return all
}

// lettersBefore is how many letters of base64 have bits of the 0, 1 or 2 bytes before a value.
var lettersBefore = []int{0, 2, 3}

// base64s returns the encodings of a value, alone and within a longer text ("user:password" of basic authentication).
// There the letters depend on the position of the value modulo three, and the letters at its ends on the neighboring
// bytes.
func base64s(v string) []string {
	var all []string
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift, begin := range lettersBefore {
			padded := make([]byte, shift, shift+len(v))
			padded = append(padded, v...)
			text := enc.EncodeToString(padded)
			end := len(padded) * 8 / 6 // behind the last letter of our bits alone
			all = append(all, text[begin:end])
		}
		all = append(all, enc.EncodeToString([]byte(v)))
	}
	return append(all, base64.StdEncoding.EncodeToString([]byte(v)), base64.URLEncoding.EncodeToString([]byte(v)))
}

// escaped returns s as it is written within a JSON string.
func escaped(s string) string {
	quoted, _ := json.Marshal(s) // a string: cannot fail
	return string(quoted[1 : len(quoted)-1])
}
