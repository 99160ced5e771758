package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"strconv"
	"strings"
)

// Call returns the digest of a call: 64 hexadecimal digits, for exactly this tool and these arguments. The order of
// members, space between values and the form of escapes make no difference, since no tool sees them; everything else
// does, even the digits of a number. Empty arguments equal {}. The digest of arguments that [Canonical] refuses depends
// on their exact bytes.
func Call(tool string, args json.RawMessage) string {
	h := sha256.New()
	part(h, []byte("deckhand call 1"))
	part(h, []byte(tool))
	if canonical, err := Canonical(args); err == nil {
		part(h, []byte("canonical"))
		part(h, canonical)
	} else {
		part(h, []byte("bytes"))
		part(h, args)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// shortLength is how many digits of a digest are at the end of a request's id: 128 bits, so that no other call with the
// same id can be found.
const shortLength = 32

// Short returns the digits of a digest that are at the end of the id of a request for approval.
func Short(sum string) string { return sum[:min(len(sum), shortLength)] }

// IsBound reports whether the id of a request ends in the digits of a digest. A user who approves such an id approves
// only the call with this digest.
func IsBound(id, sum string) bool {
	return len(sum) >= shortLength && strings.HasSuffix(id, "-"+Short(sum))
}

// Display returns the digest of a text that users see, in parts: 64 hexadecimal digits, for these
// parts in this order and no others.
func Display(parts ...string) string {
	h := sha256.New()
	part(h, []byte("deckhand display 1"))
	for _, p := range parts {
		part(h, []byte(p))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// part adds one part with its length before it, so that parts cannot run into
// each other.
func part(h hash.Hash, p []byte) {
	_, _ = h.Write(strconv.AppendInt(nil, int64(len(p)), 10)) // a hash takes everything
	_, _ = h.Write([]byte{':'})
	_, _ = h.Write(p)
}
