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

	// AnnotationTask, on a pod, is the task of its Run.
	AnnotationTask = "deckhand.dev/task"
	// AnnotationRetention, on a pod, is how long it stays after its Run finished.
	AnnotationRetention = "deckhand.dev/retention"
	// AnnotationSignals, on a pod, is what the operator says to the runner.
	AnnotationSignals = "deckhand.dev/signals"
)

// RunnerServiceAccount is the identity of every runner pod, one per namespace.
const RunnerServiceAccount = "deckhand-runner"

// DecisionsByRun is the field by which Decisions are selected, on the API server
// and in the operator's cache.
const DecisionsByRun = "spec.run"
