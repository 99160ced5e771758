package v1alpha1

// Labels and annotations of Deckhand's objects. Admission policies allow only the
// operator to write those of runner pods and of Runs.
const (
	// LabelRun, on a pod, is the name of its Run.
	LabelRun = "deckhand.dev/run"
	// LabelAttempt, on a pod, is the number of its attempt.
	LabelAttempt = "deckhand.dev/attempt"
	// LabelAgent, on a pod or on the ConfigMap of a revision, is the name of its Agent.
	LabelAgent = "deckhand.dev/agent"
	// LabelWorkflow, on the ConfigMap of a revision, is the name of its Workflow.
	LabelWorkflow = "deckhand.dev/workflow"
	// LabelRevision marks the ConfigMaps of revisions. Its value is "true", because a
	// hash is longer than a label may be.
	LabelRevision = "deckhand.dev/revision"
	// LabelEgress, on a pod and on the NetworkPolicy that selects it, names the set of
	// addresses that the pod may connect to.
	LabelEgress = "deckhand.dev/egress"
	// LabelVolumeClaim, on a pod, is the PersistentVolumeClaim that its Run shares with
	// other Runs.
	LabelVolumeClaim = "deckhand.dev/volume-claim"
	// LabelSourceVolumeClaim, on a pod, is the PersistentVolumeClaim of the Run that its Run continues, from which it
	// copies the files.
	LabelSourceVolumeClaim = "deckhand.dev/source-volume-claim"

	// LabelWorkflowRun, on a child Run, is the name of the workflow Run that created
	// it; LabelWorkflowNode is its node, LabelItemIndex the index of its item of
	// forEach, from 0, and LabelIteration its iteration of a loop, from 1.
	LabelWorkflowRun  = "deckhand.dev/workflow-run"
	LabelWorkflowNode = "deckhand.dev/workflow-node"
	LabelItemIndex    = "deckhand.dev/item-index"
	LabelIteration    = "deckhand.dev/iteration"
	// LabelParentRun, on a child Run that an agent requested, is the name of that
	// agent's Run; LabelRequest is the ID of the request.
	LabelParentRun = "deckhand.dev/parent-run"
	LabelRequest   = "deckhand.dev/request"
	// LabelSchedule, on a Run, is the name of the Schedule that created it.
	LabelSchedule = "deckhand.dev/schedule"

	// AnnotationRevisionHash is the hash of a revision: on a child Run, that of the
	// Agent or Workflow that it runs; on a ConfigMap, that of its content.
	AnnotationRevisionHash = "deckhand.dev/revision-hash"
	// AnnotationRequiredRevisions, on the ConfigMap of a Workflow's revision, lists the
	// hashes of the revisions that this one needs.
	AnnotationRequiredRevisions = "deckhand.dev/required-revisions"
	// AnnotationVolumeClaim, on a child Run, is the PersistentVolumeClaim with the
	// files that it works on.
	AnnotationVolumeClaim = "deckhand.dev/volume-claim"
	// AnnotationDigest, on a child Run, is the digest of the request.
	AnnotationDigest = "deckhand.dev/digest"
	// AnnotationRootRun, on a child Run, is the UID of its topmost ancestor, which is the id of their trace.
	AnnotationRootRun = "deckhand.dev/root-run"
	// AnnotationInputHash, on a child Run of a workflow, is the hash of its prompt, input, user and revision.
	AnnotationInputHash = "deckhand.dev/input-hash"
	// AnnotationReuseOf, on a child Run of a workflow, is the UID of the Run in spec.continueFrom, whose result it has.
	AnnotationReuseOf = "deckhand.dev/reuse-of"
	// AnnotationPaused, on a child Run, marks a Run that is paused because its parent
	// is. It continues when the parent does.
	AnnotationPaused = "deckhand.dev/paused"
	// AnnotationScheduledAt, on a Run, is the scheduled time for which a Schedule
	// created it.
	AnnotationScheduledAt = "deckhand.dev/scheduled-at"

	// AnnotationTask, on a pod, is the task of its Run.
	AnnotationTask = "deckhand.dev/task"
	// AnnotationEgress, on a pod, is the value that its label LabelEgress must have.
	AnnotationEgress = "deckhand.dev/egress"
	// AnnotationEgressClass, on a pod, is what its NetworkPolicy allows, so that the policy can be
	// restored after the settings of the operator have changed. The value of LabelEgress is its
	// hash.
	AnnotationEgressClass = "deckhand.dev/egress-class"
	// AnnotationRetention, on a pod or a PersistentVolumeClaim, is how long it is kept
	// after its Run finished.
	AnnotationRetention = "deckhand.dev/retention"
	// AnnotationRetain, on a PersistentVolumeClaim, is spec.retention.keepVolume of the
	// Agent: after which results of the Run it is kept.
	AnnotationRetain = "deckhand.dev/retain"
	// AnnotationFilesPod, on a PersistentVolumeClaim, is how a pod runs that reads its
	// files after the pods of the Run were deleted: image, user and cluster nodes.
	AnnotationFilesPod = "deckhand.dev/files-pod"
	// AnnotationFileOwner, on a PersistentVolumeClaim, is the user of the first pod, whom Deckhand or
	// the cluster chose, and the group of the volume: USER or USER:GROUP. Later pods ask for the same.
	AnnotationFileOwner = "deckhand.dev/file-owner"
	// AnnotationUsedBy, on a PersistentVolumeClaim, is the Run that continues another one on its files: NAME/UID. While
	// that Run has not ended, no other Run changes the files.
	AnnotationUsedBy = "deckhand.dev/used-by"
	// AnnotationSignals, on a pod, is what the operator tells the runner: decisions,
	// pause and stop.
	AnnotationSignals = "deckhand.dev/signals"
)

// RunnerServiceAccount is the identity of every runner pod, one per namespace.
const RunnerServiceAccount = "deckhand-runner"

// DecisionsByRun is the field by which Decisions are selected, on the API server
// and in the operator's cache.
const DecisionsByRun = "spec.run"
