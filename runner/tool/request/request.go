// Package request validates the requests of Toolsets for the operator. The runner makes tools of
// them with a package of its own.
package request

import (
	"github.com/deckhand-dev/deckhand/runner/internal/tool/request"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// An InvalidError describes what is wrong in a Toolset: Path is where, such as requests.tools[1].path, and Problem has
// what to write instead.
type InvalidError = request.InvalidError

// Check reports whether tools can be made of a Toolset: it returns nil, or an *InvalidError for the
// first thing that prevents it. It connects to nothing.
func Check(ts task.Toolset) error {
	return request.Check(ts)
}
