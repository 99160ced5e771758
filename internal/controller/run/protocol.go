package run

import (
	"fmt"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// protocolVersion is the version of the protocol that the runner of the current attempt uses, in its report or its
// termination message; 0: not known.
func (s state) protocolVersion() int {
	version := 0
	if p := s.progress(); p != nil {
		version = int(p.Version)
	}
	if t := runnerpod.Termination(s.pod()); t != nil && t.Attempt == int(s.attempt()) {
		version = max(version, t.Version)
	}
	return version
}

// protocolUnsupported fails a Run whose runner uses a newer protocol than this operator supports: its reports could
// mean something else. Older versions are supported, and fields that a version does not have are ignored.
func protocolUnsupported(s state) (plan, bool) {
	version := s.protocolVersion()
	if version <= task.Version {
		return plan{}, false
	}
	return failure(v1alpha1.ReasonMisconfigured, fmt.Sprintf(
		"The runner of attempt %d speaks version %d of the protocol between runner and operator; this operator knows versions up to %d. Upgrade the operator, or use the runner image of its release, and create a new Run",
		s.attempt(), version, task.Version)), true
}
