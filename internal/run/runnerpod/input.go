package runnerpod

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/internal/run/egress"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Input is all that a runner pod is built from.
type Input struct {
	Run      *v1alpha1.Run
	Revision *snapshot.Revision // of the Agent
	Attempt  int32
	// Limits bound all attempts of the Run together.
	Limits task.Limits
	// Durable: files and journal are on a volume.
	Durable bool
	// VolumeClaim is the volume that the pod mounts, if it exists already.
	VolumeClaim *corev1.PersistentVolumeClaim
	// ActiveDeadline is how long the pod may run.
	ActiveDeadline time.Duration
	// Signals are delivered with the pod; nil: there are none.
	Signals *task.Signals
	// Image is that of runners, unless the Agent has its own.
	Image    Image
	Defaults Defaults
	// NetworkPolicies: the pod has the label by which a NetworkPolicy selects it.
	NetworkPolicies bool
}

// builder has what the Agent says of its pods and, where it says nothing, the
// installation.
type builder struct {
	Input
	template stored.PodTemplate
	defaults Defaults
	// sandbox is where commands run; nil: nowhere.
	sandbox *task.Sandbox
	// servers are those that have a container of their own.
	servers []server
}

func newBuilder(in Input) builder {
	b := builder{Input: in, sandbox: in.Revision.Snapshot.Sandbox, servers: serverContainersOf(in.Revision.Agent)}
	if t := in.Revision.Agent.PodTemplate; t != nil {
		b.template = *t
	}
	b.defaults = in.Defaults.withTemplate(b.template)
	return b
}

// EgressClass returns what a pod may reach.
func EgressClass(in Input) egress.Class {
	var urls []string
	if p := newBuilder(in).defaults.Proxy; p != nil {
		urls = append(urls, p.HTTP, p.HTTPS)
	}
	if t := in.Defaults.Traces; t != nil {
		urls = append(urls, t.Endpoint)
	}
	return egress.Of(in.Revision.Snapshot, in.Run.Namespace, urls...)
}
