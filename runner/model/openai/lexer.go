package openai

import (
	"bytes"
	"iter"

	"github.com/deckhand-dev/deckhand/runner/model/httpapi"
)

// What follows reads JSON as it lies in a buffer: a chunk holds far more than is
// asked of it, and the standard decoder looks at each byte several times. Lexing
// and decoding are held to the standard decoder by a fuzz target.

// maxDepth is how deep JSON may be nested, as in the standard decoder.
const maxDepth = 10_000

// valid reports whether data is one JSON value, with space around it.
func valid(data []byte) bool {
	end := skipValue(data, skipSpace(data, 0), maxDepth)
	return end >= 0 && skipSpace(data, end) == len(data)
}

// members are the keys and values of a valid JSON object, in their order; of
// anything else there are none. They are pieces of data.
func members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		for i := first(object, '{'); i >= 0; {
			end := skipString(object, i)
			key := object[i+1 : end-1]
			if bytes.IndexByte(key, '\\') >= 0 {
				key = []byte(httpapi.String(object[i:end]))
			}
			i = skipSpace(object, skipSpace(object, end)+1) // the colon
			end = skipValue(object, i, maxDepth)
			if !yield(key, object[i:end]) {
				return
			}
			i = following(object, end)
		}
	}
}

// elements are the values of a valid JSON array; of anything else there are
// none. They are pieces of data.
func elements(array []byte) iter.Seq[[]byte] {
	return func(yield func(value []byte) bool) {
		for i := first(array, '['); i >= 0; {
			end := skipValue(array, i, maxDepth)
			if !yield(array[i:end]) {
				return
			}
			i = following(array, end)
		}
	}
}

// first is where the first item of a valid list begins that is opened so, or -1
// if there is none.
func first(list []byte, opening byte) int {
	i := skipSpace(list, 0)
	if i == len(list) || list[i] != opening {
		return -1
	}
	if i = skipSpace(list, i+1); list[i] == closing(opening) {
		return -1
	}
	return i
}

// following is where the item after the one begins that ended at i, or -1.
func following(list []byte, i int) int {
	if i = skipSpace(list, i); list[i] != ',' {
		return -1
	}
	return skipSpace(list, i+1)
}

// closing is the mark that closes a list: it comes two after the one that opens
// it.
func closing(opening byte) byte { return opening + 2 }

func skipSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\t' || data[i] == '\n' || data[i] == '\r') {
		i++
	}
	return i
}

// skipValue is where the value ends that begins at i, or -1 if there is none.
func skipValue(data []byte, i, depth int) int {
	if i >= len(data) {
		return -1
	}
	switch data[i] {
	case '"':
		return skipString(data, i)
	case '{':
		return skipList(data, i, depth, skipMember)
	case '[':
		return skipList(data, i, depth, skipValue)
	case 't':
		return skipWord(data, i, "true")
	case 'f':
		return skipWord(data, i, "false")
	case 'n':
		return skipWord(data, i, "null")
	}
	return skipNumber(data, i)
}

// skipList is where an object or an array ends.
func skipList(data []byte, i, depth int, item func([]byte, int, int) int) int {
	if depth == 0 {
		return -1
	}
	end := closing(data[i])
	if i = skipSpace(data, i+1); i < len(data) && data[i] == end {
		return i + 1
	}
	for {
		if i = item(data, i, depth-1); i < 0 {
			return -1
		}
		if i = skipSpace(data, i); i == len(data) {
			return -1
		}
		switch data[i] {
		case end:
			return i + 1
		case ',':
			i = skipSpace(data, i+1)
		default:
			return -1
		}
	}
}

func skipMember(data []byte, i, depth int) int {
	if i = skipString(data, i); i < 0 {
		return -1
	}
	if i = skipSpace(data, i); i == len(data) || data[i] != ':' {
		return -1
	}
	return skipValue(data, skipSpace(data, i+1), depth)
}

// skipString is where the string ends that begins at i.
func skipString(data []byte, i int) int {
	if i >= len(data) || data[i] != '"' {
		return -1
	}
	for i++; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			return i + 1
		case c < ' ':
			return -1
		case c == '\\':
			if i = skipEscape(data, i+1); i < 0 {
				return -1
			}
		}
	}
	return -1
}

// skipEscape is the last byte of an escape whose letter is at i.
func skipEscape(data []byte, i int) int {
	if i >= len(data) {
		return -1
	}
	switch data[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i
	case 'u':
		if i+4 >= len(data) {
			return -1
		}
		for _, c := range data[i+1 : i+5] {
			if !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'f') {
				return -1
			}
		}
		return i + 4
	}
	return -1
}

func skipWord(data []byte, i int, word string) int {
	if end := i + len(word); end <= len(data) && string(data[i:end]) == word {
		return end
	}
	return -1
}

// skipNumber is where the number ends that begins at i.
func skipNumber(data []byte, i int) int {
	if data[i] == '-' {
		i++
	}
	start := i
	if i = skipDigits(data, i); i < 0 || data[start] == '0' && i > start+1 {
		return -1
	}
	if i < len(data) && data[i] == '.' {
		i = skipDigits(data, i+1)
	}
	return skipExponent(data, i)
}

func skipExponent(data []byte, i int) int {
	if i < 0 || i == len(data) || data[i]|0x20 != 'e' {
		return i
	}
	if i++; i < len(data) && (data[i] == '+' || data[i] == '-') {
		i++
	}
	return skipDigits(data, i)
}

// skipDigits is where the digits end of which one at least is at i.
func skipDigits(data []byte, i int) int {
	start := i
	for i < len(data) && isDigit(data[i]) {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
