package v1alpha1

// Labels and annotations of Deckhand's objects. Only the operator may write the
// annotations of a runner pod; an admission policy sees to it.
const (
	// LabelRun, on a pod, is the name of its Run.
	LabelRun = "deckhand.dev/run"
	// LabelAttempt, on a pod, is the number of its attempt.
	LabelAttempt = "deckhand.dev/attempt"
	// LabelAgent, on a pod or a snapshot, is the name of its Agent.
	LabelAgent = "deckhand.dev/agent"
	// LabelSnapshot, on a ConfigMap, marks an Agent's version.
	LabelSnapshot = "deckhand.dev/snapshot"
	// LabelEgress, on a pod and on the NetworkPolicy that selects it, names what
	// the pod may reach.
	LabelEgress = "deckhand.dev/egress"

	// AnnotationTask, on a pod, is the task of its Run.
	AnnotationTask = "deckhand.dev/task"
	// AnnotationRetention, on a pod or a claim, is how long it stays after its Run
	// finished.
	AnnotationRetention = "deckhand.dev/retention"
	// AnnotationRetain, on a claim, says after which Runs it stays at all.
	AnnotationRetain = "deckhand.dev/retain"
	// AnnotationSignals, on a pod, is what the operator says to the runner.
	AnnotationSignals = "deckhand.dev/signals"
)

// RunnerServiceAccount is the identity of every runner pod, one per namespace.
const RunnerServiceAccount = "deckhand-runner"

// DecisionsByRun is the field by which Decisions are selected, on the API server
// and in the operator's cache.
const DecisionsByRun = "spec.run"
