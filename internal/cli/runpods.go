package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A podReader reads the pods of Runs and their logs, for all commands. A user who may create pods chooses their names,
// labels and owners, so it returns only pods that are proven to belong to a Run, and names each other pod once.
type podReader struct {
	client client.Client
	open   logOpener
	// say prints which pod is left out, and why.
	say func(string)
	// awaits is whether a pod that is not in the status yet is read later instead of being named.
	awaits bool
	named  map[types.UID]bool
}

func newPodReader(c client.Client, open logOpener, say func(string)) *podReader {
	return &podReader{client: c, open: open, say: say, named: map[types.UID]bool{}}
}

// podReaderOf returns a podReader for a command, which names pods on the standard error.
func podReaderOf(f *Factory, c client.Client) *podReader {
	open := func(ctx context.Context, namespace, pod string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
		_, open, err := f.logClients()
		if err != nil {
			return nil, err
		}
		return open(ctx, namespace, pod, o)
	}
	return newPodReader(c, open, func(text string) { fmt.Fprintln(f.Err, untrusted.Line(text, 1024)) })
}

// list returns the pods of a Run, the oldest attempt first.
func (r *podReader) list(ctx context.Context, run *v1alpha1.Run) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := r.client.List(ctx, &pods, client.InNamespace(run.Namespace), client.MatchingLabels{v1alpha1.LabelRun: run.Name}); err != nil {
		return nil, err
	}
	return r.proven(run, pods.Items), nil
}

// last returns the pod of the last attempt of a Run; nil: it does not exist.
func (r *podReader) last(ctx context.Context, run *v1alpha1.Run) (*corev1.Pod, error) {
	pods, err := r.list(ctx, run)
	number, _ := currentAttempt(run)
	if last := len(pods) - 1; last >= 0 && runnerpod.AttemptOf(&pods[last]) == number {
		return &pods[last], err
	}
	return nil, err
}

// proven returns the pods that are proven to belong to a Run, oldest attempt first.
func (r *podReader) proven(run *v1alpha1.Run, pods []corev1.Pod) []corev1.Pod {
	var own []corev1.Pod
	for i := range pods {
		pod := &pods[i]
		if pod.Labels[v1alpha1.LabelRun] != run.Name && !metav1.IsControlledBy(pod, run) {
			continue
		}
		p := proofOf(pod, run)
		if p == proofComplete {
			own = append(own, *pod)
		}
		r.name(pod, run, p)
	}
	slices.SortStableFunc(own, func(a, b corev1.Pod) int { return cmp.Compare(runnerpod.AttemptOf(&a), runnerpod.AttemptOf(&b)) })
	return own
}

// name prints once that a pod is left out.
func (r *podReader) name(pod *corev1.Pod, run *v1alpha1.Run, p proof) {
	text := ""
	switch p {
	case proofComplete, proofOfAnotherRun:
		return
	case proofNotRecorded:
		if r.awaits {
			return
		}
		text = fmt.Sprintf("it is not in the status of Run %s: status.attempt.podUID has another UID, or none yet. If the pod is new, try again", run.Name)
	case proofMissing:
		text = fmt.Sprintf("its labels or its owner name Run %s, but the operator did not create it for this Run. Do not trust what it prints. Find out who created it, and delete it: kubectl delete pod %s -n %s", run.Name, pod.Name, pod.Namespace)
	}
	if !r.named[pod.UID] {
		r.named[pod.UID] = true
		r.say("Pod " + pod.Name + " is left out: " + text)
	}
}

// A proof is whether a pod belongs to the Run that its labels or its owner name.
type proof int

const (
	// proofMissing: users of the namespace may have created the pod.
	proofMissing proof = iota
	// proofOfAnotherRun: the operator created the pod for another Run, for example an earlier one with the same name.
	proofOfAnotherRun
	// proofNotRecorded: the operator created the pod, but the status does not have it as the pod of the current
	// attempt.
	proofNotRecorded
	// proofComplete: it is a pod of the Run.
	proofComplete
)

// proofOf compares a pod with what only the operator writes: the ServiceAccount of runners and the
// task, which an admission policy guards, and the status of the Run.
func proofOf(pod *corev1.Pod, run *v1alpha1.Run) proof {
	if pod.Spec.ServiceAccountName != v1alpha1.RunnerServiceAccount {
		return proofMissing
	}
	current, uid := currentAttempt(run)
	if uid == string(pod.UID) && runnerpod.BelongsTo(pod, run) {
		return proofComplete
	}
	attempt := runnerpod.AttemptOf(pod)
	switch runnerpod.TaskIn(pod).Run.UID {
	case "":
		return proofMissing
	case string(run.UID):
		if attempt > 0 && attempt < current {
			return proofComplete
		}
		return proofNotRecorded
	}
	return proofOfAnotherRun
}

// currentAttempt returns the number of the current attempt of a Run and the UID of its pod; empty: not known yet. The
// operator may record the first attempt after its runner has reported.
func currentAttempt(run *v1alpha1.Run) (number int, podUID string) {
	number = 1
	if a := run.Status.Attempt; a != nil {
		number, podUID = int(a.Number), a.PodUID
	}
	if p := progressOf(run); podUID == "" && int(p.Attempt) == number {
		podUID = p.PodUID
	}
	return number, podUID
}

// openLog opens the log of a pod. Logs are requested by name, and a user who may delete and create pods can replace a
// pod, so the pod is compared again after the log was opened. If another pod has the name, the error is NotFound.
func (r *podReader) openLog(ctx context.Context, pod *corev1.Pod, o *corev1.PodLogOptions) (io.ReadCloser, error) {
	stream, err := r.open(ctx, pod.Namespace, pod.Name, o)
	if err != nil {
		return nil, err
	}
	exists, err := r.exists(ctx, pod)
	if err == nil && !exists {
		err = apierrors.NewNotFound(corev1.Resource("pods"), pod.Name)
	}
	if err != nil {
		_ = stream.Close()
		return nil, err
	}
	return stream, nil
}

// exists reports whether a pod exists. It lists, because the user may have no right to get pods.
func (r *podReader) exists(ctx context.Context, pod *corev1.Pod) (bool, error) {
	var pods metav1.PartialObjectMetadataList
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	options := []client.ListOption{client.InNamespace(pod.Namespace)}
	if run := pod.Labels[v1alpha1.LabelRun]; run != "" {
		options = append(options, client.MatchingLabels{v1alpha1.LabelRun: run})
	}
	err := r.client.List(ctx, &pods, options...)
	return slices.ContainsFunc(pods.Items, func(p metav1.PartialObjectMetadata) bool { return p.UID == pod.UID }), err
}

// maxStartLine bounds a line of the log of a container, in bytes.
const maxStartLine = 16 << 10

// startingContainer returns the container of a pod that runs before the runner starts, or an empty name.
func startingContainer(pod *corev1.Pod) string {
	i := slices.IndexFunc(pod.Status.InitContainerStatuses, func(c corev1.ContainerStatus) bool {
		return (c.Name == runnerpod.FetchContainer || c.Name == runnerpod.InstallContainer) && c.State.Running != nil
	})
	if i < 0 {
		return ""
	}
	return pod.Status.InitContainerStatuses[i].Name
}

// lastStartLine returns the last line of the log of the container that runs before the runner: only its log shows what
// it retries. It is empty if there is none, or if the user may not read logs.
func (r *podReader) lastStartLine(ctx context.Context, pod *corev1.Pod) string {
	container := startingContainer(pod)
	if container == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	lines := int64(1)
	log, err := r.openLog(ctx, pod, &corev1.PodLogOptions{Container: container, TailLines: &lines})
	if err != nil {
		return ""
	}
	defer func() { _ = log.Close() }()
	line, _ := io.ReadAll(io.LimitReader(log, maxStartLine))
	return startLine(string(line))
}

// startLine returns a line of the log of the runner's program as text.
func startLine(line string) string {
	var said struct {
		Msg   string `json:"msg"`
		Error string `json:"error"`
	}
	text := strings.TrimSpace(line)
	if json.Unmarshal([]byte(text), &said) == nil && said.Msg != "" {
		text = said.Msg
		if said.Error != "" {
			text += ": " + said.Error
		}
	}
	return untrusted.Line(text, task.MaxMessage)
}
