package enforce

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Label is a label of a namespace, whose value is a Mode.
const Label = "deckhand.test/policies"

// A Mode is how policies take effect on the pods of a namespace.
type Mode string

// The modes.
const (
	// None ignores policies, as plugins without support of them do.
	None Mode = "None"
	// Enforced enforces policies from the moment at which a pod's address is known. Earlier connections of a pod stay
	// open.
	Enforced Mode = "Enforced"
	// Delayed leaves a pod open until two seconds after it runs. Then policies are enforced,
	// and no reply arrives any more at a connection that the pod has begun before, allowed or not.
	Delayed Mode = "Delayed"
)

// openFor is how long a pod that runs is open in a namespace with the mode Delayed.
const openFor = 2 * time.Second

// ParseMode reads a Mode. The empty one is None.
func ParseMode(text string) (Mode, error) {
	switch m := Mode(text); m {
	case "":
		return None, nil
	case None, Enforced, Delayed:
		return m, nil
	}
	return "", fmt.Errorf("%q is not a mode of policies; write %s, %s or %s", text, None, Enforced, Delayed)
}

func (s State) modeOf(namespace string) Mode {
	for _, n := range s.Namespaces {
		if n.Name == namespace {
			return modeOf(n, s.Default)
		}
	}
	return s.Default
}

// modeOf returns the mode of a namespace. A label that is not a mode is ignored.
func modeOf(n *corev1.Namespace, otherwise Mode) Mode {
	if text, has := n.Labels[Label]; has {
		if m, err := ParseMode(text); err == nil {
			return m
		}
	}
	return otherwise
}
