package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// errNotInLog is why a request is not shown whole.
var errNotInLog = errors.New("the logs of its pods do not have them")

// whole returns a request with all of its arguments, of which the status has a part. They are in the
// log of the pod that asked. If they cannot be read, it returns the request as it is and why.
func (f *Factory) whole(ctx context.Context, run *v1alpha1.Run, r *v1alpha1.PendingRequest) (*v1alpha1.PendingRequest, error) {
	if !r.ArgsTruncated {
		return r, nil
	}
	c, open, err := f.logClients()
	if err != nil {
		return r, err
	}
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(run.Namespace), client.MatchingLabels{v1alpha1.LabelRun: run.Name}); err != nil {
		return r, err
	}
	for i := range pods.Items {
		if !metav1.IsControlledBy(&pods.Items[i], run) {
			continue
		}
		args, err := argumentsOf(ctx, open, &pods.Items[i], r)
		if err != nil {
			return r, err
		}
		if args != "" {
			full := r.DeepCopy()
			full.Args, full.ArgsTruncated = args, false
			return full, nil
		}
	}
	return r, errNotInLog
}

// argumentsOf returns the arguments of a request that the log of a pod has; empty: it has none.
func argumentsOf(ctx context.Context, open logOpener, pod *corev1.Pod, r *v1alpha1.PendingRequest) (string, error) {
	log, err := open(ctx, pod.Namespace, pod.Name, &corev1.PodLogOptions{Container: runnerContainer})
	if apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) { // deleted, or not started
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = log.Close() }()
	args, err := argumentsIn(log, r)
	if err != nil {
		err = fmt.Errorf("reading the log of pod %s: %w", pod.Name, err)
	}
	return args, err
}

// argumentsIn returns the arguments of a request that a log has; empty: it has none. The digest is
// compared too, because a request with the same id may have asked for another call.
func argumentsIn(log io.Reader, r *v1alpha1.PendingRequest) (string, error) {
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadBytes('\n')
		if bytes.Contains(line, []byte(step.EventPending)) {
			var e step.Event
			var p events.Pending
			if json.Unmarshal(line, &e) == nil && e.Type == step.EventPending && json.Unmarshal(e.Data, &p) == nil &&
				p.ID == r.ID && p.Digest == r.Digest && !p.ArgsTruncated && p.Args != "" {
				return p.Args, nil
			}
		}
		if errors.Is(err, io.EOF) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
	}
}

// notShownWhole is the error of an approval of what was not shown.
func notShownWhole(run *v1alpha1.Run, r *v1alpha1.PendingRequest, cause error) error {
	return fmt.Errorf("only a part of the arguments is shown, so you cannot be asked to approve them: %s. To see all of them: kubectl deckhand logs %s -n %s. If you agree with them, add --yes behind the id: kubectl deckhand approve %s %s -n %s --yes",
		explain(cause), run.Name, run.Namespace, run.Name, r.ID, run.Namespace)
}
