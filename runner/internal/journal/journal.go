package journal

import (
	"iter"
)

// A Log is where the loop records what it does, before it does it.
type Log interface {
	// Append records r; when it returns, r survives the death of the process and
	// of the node, as long as its disk does. It numbers the record and is safe for
	// concurrent use.
	Append(r Record) error
	// Read returns the whole journal, oldest first. An error ends it.
	Read() iter.Seq2[Record, error]
}
