package main

import (
	"errors"
	"flag"
	"math"
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/operator"
)

// defaultFlags are the defaults of Runs and Agents.
type defaultFlags struct {
	ttl        time.Duration
	durability string
}

func (d *defaultFlags) register(f *flag.FlagSet) {
	f.DurationVar(&d.ttl, "default-run-ttl", 0, "after how long a finished Run without ttlSecondsAfterFinished is deleted, as 168h; 0: never")
	f.StringVar(&d.durability, "default-durability", string(v1alpha1.DurabilityPod), "durability of the workspace of Agents without one: Pod or Volume")
}

var errRunTTL = errors.New("--default-run-ttl must be 0 for never, or from 1s to 596523h: write 168h for a week")

// into sets the operator's options that the flags give, or returns which flag is invalid.
func (d *defaultFlags) into(o *operator.Options) error {
	if d.ttl != 0 && (d.ttl < time.Second || d.ttl > math.MaxInt32*time.Second) {
		return errRunTTL
	}
	o.DefaultTTL, o.DefaultDurability = d.ttl, v1alpha1.Durability(d.durability)
	if o.DefaultDurability != v1alpha1.DurabilityPod && o.DefaultDurability != v1alpha1.DurabilityVolume {
		return flagErrorf("--default-durability is %q: write Pod or Volume", d.durability)
	}
	return nil
}
