package v1alpha1

// Labels and annotations of Deckhand's objects. Only the operator may write those
// of runner pods and of Runs; admission policies see to it.
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

	// LabelWorkflowRun, on a child Run, is the name of the workflow Run that it is a
	// part of; LabelNode its node, LabelIndex its item, from 0, and LabelIteration
	// its iteration, from 1.
	LabelWorkflowRun = "deckhand.dev/workflow-run"
	LabelNode        = "deckhand.dev/node"
	LabelIndex       = "deckhand.dev/index"
	LabelIteration   = "deckhand.dev/iteration"
	// LabelParentRun, on a child Run that an agent asked for, is the name of that
	// agent's Run; LabelRequest the id of the request.
	LabelParentRun = "deckhand.dev/parent-run"
	LabelRequest   = "deckhand.dev/request"
	// LabelSchedule, on a Run, is the name of the Schedule that made it.
	LabelSchedule = "deckhand.dev/schedule"
	// LabelWorkflow, on the ConfigMap of a Workflow's version, is the Workflow's name.
	LabelWorkflow = "deckhand.dev/workflow"
	// LabelClaim, on a pod, is the claim that it shares with other Runs.
	LabelClaim = "deckhand.dev/claim"

	// AnnotationVersion, on a child Run, is the hash of the version that it runs, of
	// its Agent or its Workflow.
	AnnotationVersion = "deckhand.dev/version"
	// AnnotationClaim, on a child Run, is the claim whose files it works on.
	AnnotationClaim = "deckhand.dev/claim"
	// AnnotationDigest, on a child Run, is the digest of the request.
	AnnotationDigest = "deckhand.dev/digest"
	// AnnotationPaused, on a child Run, says that it is paused because its parent is,
	// so that it goes on when that does.
	AnnotationPaused = "deckhand.dev/paused"
	// AnnotationScheduledAt, on a Run, is the time that a Schedule made it for.
	AnnotationScheduledAt = "deckhand.dev/scheduled-at"

	// AnnotationTask, on a pod, is the task of its Run.
	AnnotationTask = "deckhand.dev/task"
	// AnnotationEgress, on a pod, is the value that its label LabelEgress must have.
	AnnotationEgress = "deckhand.dev/egress"
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
