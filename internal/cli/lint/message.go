package lint

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	typeError = regexp.MustCompile(`must be of type (\S+): "(\S+)"$`)
	indexed   = regexp.MustCompile(`\.(\d+)(\.|$)`)
)

// maxShown is the maximum number of characters of a wrong value in a message.
const maxShown = 60

// problemOf turns an error of the API server into a problem. It leaves out the path, which is
// shown before, and values that are long.
func problemOf(err *field.Error) problem {
	path := indexed.ReplaceAllString(strings.TrimPrefix(err.Field, "<nil>"), "[$1]$2")
	p := problem{path: path, message: message(err, path)}
	value, _ := err.BadValue.(string)
	switch m := typeError.FindStringSubmatch(err.Detail); {
	case m != nil:
		p.kind, p.want = otherType, m[1]
		p.message = fmt.Sprintf("must be of type %s, not %s", strings.ReplaceAll(m[1], ",", " or "), m[2])
	case err.Type == field.ErrorTypeNotSupported:
		p.kind = unsupportedValue
	case strings.Contains(err.Detail, quantityPattern):
		p.message = shown(value) + ": " + quantityMessage(path, value)
	default:
		if of := unitMessage(err.Detail, value); of != "" {
			p.message = strings.TrimPrefix(shown(value)+": "+of, ": ")
		}
	}
	return p
}

func message(err *field.Error, path string) string {
	detail := strings.TrimPrefix(err.Detail, path+" in body ")
	switch {
	case err.Type == field.ErrorTypeRequired && detail == "":
		return "is required"
	case err.Type == field.ErrorTypeRequired:
		return "is required: " + detail
	case err.Type == field.ErrorTypeDuplicate:
		return fmt.Sprintf("duplicate value %s", shown(err.BadValue))
	case detail == "":
		return err.ErrorBody()
	}
	if value := shown(err.BadValue); value != "" {
		return value + ": " + detail
	}
	return detail
}

// shown returns a value as text if it is short; empty: it is not.
func shown(value any) string {
	var out string
	switch value.(type) {
	case string:
		out = fmt.Sprintf("%q", value)
	case bool, int, int32, int64, float64:
		out = fmt.Sprint(value)
	case map[string]any: // the keys of an element of a list
		data, err := json.Marshal(value)
		if err == nil {
			out = string(data)
		}
	}
	if len(out) > maxShown {
		return ""
	}
	return out
}
