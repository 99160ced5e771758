package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"strconv"
)

// Call is the name of a call: 64 hexadecimal digits, for these and no other
// arguments of this tool. The order of members, the space between values and
// how characters are escaped make no difference, since no tool sees them; all
// else does, down to the digits of a number. No arguments are the same as {}.
//
// Arguments that [Canonical] refuses have a name too, of their very bytes.
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

// part adds one part with its length before it, so that parts cannot run into
// each other.
func part(h hash.Hash, p []byte) {
	_, _ = h.Write(strconv.AppendInt(nil, int64(len(p)), 10)) // a hash takes everything
	_, _ = h.Write([]byte{':'})
	_, _ = h.Write(p)
}
