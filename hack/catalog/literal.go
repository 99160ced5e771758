package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
)

var errSyntax = errors.New("not a literal of JavaScript that this reader knows")

// A literal reads one literal of JavaScript as minifiers write it: objects with unquoted keys,
// numbers without a leading zero, !0 and !1. It evaluates nothing.
type literal struct {
	text string
	at   int
}

func (l *literal) fail() error { return fmt.Errorf("at byte %d: %w", l.at, errSyntax) }

// take reports whether the text continues with s, and moves behind it.
func (l *literal) take(s string) bool {
	if !strings.HasPrefix(l.text[l.at:], s) {
		return false
	}
	l.at += len(s)
	return true
}

// value reads a value: map[string]any, []any, string, json.Number, bool or nil.
func (l *literal) value() (any, error) {
	if l.at >= len(l.text) {
		return nil, l.fail()
	}
	switch c := l.text[l.at]; {
	case l.take("{"):
		return l.object()
	case l.take("["):
		return l.array()
	case c == '"' || c == '\'' || c == '`':
		l.at++
		return l.quoted(c)
	case l.take("!0"):
		return true, nil
	case l.take("!1"):
		return false, nil
	case l.take("null"), l.take("void 0"):
		return nil, nil //nolint:nilnil // null is a value
	}
	number := l.run("0123456789.eE+-")
	if number == "" {
		return nil, l.fail()
	}
	r, ok := new(big.Rat).SetString(number)
	switch {
	case !ok:
		return nil, l.fail()
	case r.IsInt(): // 2e5
		return json.Number(r.Num().String()), nil
	case strings.HasPrefix(number, "."):
		return json.Number("0" + number), nil
	}
	return json.Number(number), nil
}

// run reads the longest text of some characters.
func (l *literal) run(chars string) string {
	rest := l.text[l.at:]
	n := len(rest) - len(strings.TrimLeft(rest, chars))
	l.at += n
	return rest[:n]
}

func (l *literal) object() (any, error) {
	out := map[string]any{}
	for !l.take("}") {
		key, err := l.key()
		if err != nil {
			return nil, err
		}
		if out[key], err = l.member("}"); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// key reads the name of a field, and the colon behind it.
func (l *literal) key() (string, error) {
	key := l.run("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$")
	if key == "" && l.take(`"`) {
		quoted, err := l.quoted('"')
		if err != nil {
			return "", err
		}
		key = quoted
	}
	if key == "" || !l.take(":") {
		return "", l.fail()
	}
	return key, nil
}

// member reads a value of an object or an array, and the comma behind it.
func (l *literal) member(end string) (any, error) {
	v, err := l.value()
	if err == nil && !l.take(",") && !strings.HasPrefix(l.text[l.at:], end) {
		err = l.fail()
	}
	return v, err
}

func (l *literal) array() (any, error) {
	out := []any{}
	for !l.take("]") {
		v, err := l.member("]")
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// quoted reads a string behind its first quotation mark.
func (l *literal) quoted(mark byte) (string, error) {
	var out strings.Builder
	for l.at < len(l.text) {
		c := l.text[l.at]
		l.at++
		switch {
		case c == mark:
			return out.String(), nil
		case mark == '`' && c == '$' && strings.HasPrefix(l.text[l.at:], "{"):
			return "", l.fail() // an expression
		case c != '\\':
			out.WriteByte(c)
			continue
		}
		if err := l.escape(&out); err != nil {
			return "", err
		}
	}
	return "", l.fail()
}

// escape reads what follows a backslash.
func (l *literal) escape(out *strings.Builder) error {
	if l.at >= len(l.text) {
		return l.fail()
	}
	c := l.text[l.at]
	l.at++
	switch c {
	case 'n':
		out.WriteByte('\n')
	case 't':
		out.WriteByte('\t')
	case 'r':
		out.WriteByte('\r')
	case 'u', 'x', '0':
		return l.fail()
	default:
		out.WriteByte(c)
	}
	return nil
}
