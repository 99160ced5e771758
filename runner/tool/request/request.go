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

// Check returns an *InvalidError for the first problem of spec.requests of a Toolset, or nil if the runner can make
// tools of it. It opens no connection.
func Check(ts task.Toolset) error {
	return request.Check(ts)
}
