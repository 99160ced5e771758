// Package stepsize estimates the memory of steps.
package stepsize

import "github.com/deckhand-dev/deckhand/runner/step"

// overhead is the estimated size of a step without its content.
const overhead = 500

// Of returns about how many bytes a step takes.
func Of(s step.Step) int64 {
	n := overhead
	for _, p := range s.Parts {
		n += len(p.Text) + len(p.Signature) + len(p.Provider)
	}
	for _, c := range s.Calls {
		n += len(c.Name) + len(c.Args)
	}
	for _, h := range s.Hooks {
		n += len(h.Name) + len(h.Reason)
	}
	return int64(n)
}
