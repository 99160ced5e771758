//go:build linux

package probe

import (
	"slices"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
)

// Judge says what the findings amount to. What was not tried did not hold.
func Judge(f Findings, abi int) sandbox.Confinement {
	c := sandbox.Confinement{
		Process: sandbox.Unenforced, Files: sandbox.Unenforced, Network: sandbox.Unenforced, LandlockABI: abi,
	}
	if f.Restricted && refused(f.Secrets) && refused(f.Resources) {
		c.Process = sandbox.Enforced
	}
	if refused(f.Files) {
		c.Files = sandbox.Enforced
	}
	if refused(f.Low) && refused(f.Datagrams) {
		c.Network = sandbox.PortsOnly
		if len(f.High) > 0 && !slices.Contains(f.High, Succeeded) {
			c.Network = sandbox.Enforced
		}
	}
	return c
}

// refused reports whether each of some tries was.
func refused(all []Outcome) bool {
	return len(all) > 0 && !slices.ContainsFunc(all, func(o Outcome) bool { return o != Refused })
}
