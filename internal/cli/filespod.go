package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/untrusted"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A podExecutor executes a command in a container.
type podExecutor func(ctx context.Context, in container, command []string, stdout, stderr io.Writer) error

// find returns a container that has the files, and what to call when they are read: it deletes
// a pod that was created for them.
func (p filesPods) find(ctx context.Context) (container, func(), error) {
	nothing := func() {}
	var pods corev1.PodList
	if err := p.client.List(ctx, &pods, client.InNamespace(p.run.Namespace)); err != nil {
		return container{}, nil, err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if status := runnerpod.RunnerStatus(pod); !isFinished(p.run) && metav1.IsControlledBy(pod, p.run) && status != nil && status.State.Running != nil {
			if err := p.requireRights(ctx, "pods/exec"); err != nil {
				return container{}, nil, err
			}
			return container{pod.Namespace, pod.Name, runnerpod.RunnerContainer}, nothing, nil
		}
	}
	claim, err := p.claim(ctx)
	if err != nil {
		return container{}, nil, err
	}
	p.removeEnded(ctx, pods.Items)
	node, err := nodeThatMounts(claim, pods.Items)
	if err != nil {
		return container{}, nil, err
	}
	if err := p.requireRights(ctx, "pods", "pods/exec"); err != nil {
		return container{}, nil, err
	}
	return p.create(ctx, claim, node)
}

// claim returns the claim with the files of the Run.
func (p filesPods) claim(ctx context.Context) (*corev1.PersistentVolumeClaim, error) {
	name := ""
	if p.run.Status.Attempt != nil {
		name = p.run.Status.Attempt.VolumeClaim
	}
	if name == "" {
		return nil, fmt.Errorf("run %s has no pod now: %s. Try again when it works", p.run.Name, untrusted.Line(message(p.run), 400))
	}
	var claim corev1.PersistentVolumeClaim
	err := p.client.Get(ctx, client.ObjectKey{Namespace: p.run.Namespace, Name: name}, &claim)
	switch {
	case apierrors.IsNotFound(err), err == nil && !runnerpod.OwnsVolume(p.run, &claim):
		return nil, fmt.Errorf("the files of Run %s were deleted with PersistentVolumeClaim %s. To keep files for longer, set workspace.retention of Agent %s", p.run.Name, name, p.run.Spec.Agent)
	case err != nil:
		return nil, err
	case claim.DeletionTimestamp != nil:
		return nil, fmt.Errorf("the files of Run %s are being deleted with PersistentVolumeClaim %s. To keep files for longer, set workspace.retention of Agent %s", p.run.Name, name, p.run.Spec.Agent)
	}
	return &claim, nil
}

// nodeThatMounts returns the cluster node on which a claim must be mounted, because a pod there uses
// it already; empty: any.
func nodeThatMounts(claim *corev1.PersistentVolumeClaim, pods []corev1.Pod) (string, error) {
	for i := range pods {
		if !runnerpod.InUse(claim.Name, pods[i:i+1]) {
			continue
		}
		switch {
		case slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod):
			return "", fmt.Errorf("pod %s uses PersistentVolumeClaim %s, and with accessMode ReadWriteOncePod no other pod can: try again when that pod has ended", pods[i].Name, claim.Name)
		case slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOnce):
			return pods[i].Spec.NodeName, nil
		}
	}
	return "", nil
}

// requireRights returns an error that names the missing rights. Without it, a pod could be
// created that cannot be used.
func (p filesPods) requireRights(ctx context.Context, resources ...string) error {
	var missing []string
	for _, of := range resources {
		name, subresource, _ := strings.Cut(of, "/")
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: p.run.Namespace, Verb: "create", Resource: name, Subresource: subresource},
		}}
		if err := p.client.Create(ctx, review); err != nil {
			return err
		}
		if !review.Status.Allowed {
			missing = append(missing, "create "+of)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("you may not %s in namespace %s, which reading the files needs. Ask an administrator to bind the ClusterRole edit to you in this namespace", strings.Join(missing, " and "), p.run.Namespace)
}

// create creates a pod that reads the claim, and waits until it runs.
func (p filesPods) create(ctx context.Context, claim *corev1.PersistentVolumeClaim, node string) (container, func(), error) {
	how := runnerpod.FilesPodOf(claim)
	how.Image = cmp.Or(p.o.image, how.Image)
	if how.Image == "" {
		return container{}, nil, fmt.Errorf("PersistentVolumeClaim %s does not name the image of the runner, because an older version of Deckhand created it. Name it with --image", claim.Name)
	}
	pod := how.Pod(p.run, claim.Name, p.folder, node)
	if err := p.client.Create(ctx, pod); err != nil {
		return container{}, nil, err
	}
	release := func() { p.remove(ctx, pod) }
	if err := p.await(ctx, pod); err != nil {
		release()
		return container{}, nil, err
	}
	return container{pod.Namespace, pod.Name, runnerpod.FilesContainer}, release, nil
}

// remove deletes the pod, also after an interrupt.
func (p filesPods) remove(ctx context.Context, pod *corev1.Pod) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := p.client.Delete(ctx, pod); err != nil && !apierrors.IsNotFound(err) {
		fmt.Fprintf(p.Err, "Pod %s was not deleted: %s. Delete it: kubectl delete pod %s -n %s\n", pod.Name, explain(err), pod.Name, pod.Namespace)
	}
}

// removeEnded deletes pods of earlier commands that were killed. They have ended, but keep the
// claim from being deleted.
func (p filesPods) removeEnded(ctx context.Context, pods []corev1.Pod) {
	for i := range pods {
		pod := &pods[i]
		ended := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
		if ended && runnerpod.IsFilesPod(pod, p.run) {
			p.remove(ctx, pod)
		}
	}
}

// await waits until the container runs.
func (p filesPods) await(ctx context.Context, pod *corev1.Pod) error {
	key, until, said := client.ObjectKeyFromObject(pod), p.Now().Add(p.o.timeout), ""
	for {
		if err := p.client.Get(ctx, key, pod); err != nil {
			return err
		}
		state, what := filesPodState(pod)
		switch {
		case state.Running != nil:
			return nil
		case state.Terminated != nil || pod.Status.Phase == corev1.PodFailed:
			return fmt.Errorf("pod %s, which reads the files, ended: %s. If image %s is older than this command, name a newer one with --image", pod.Name, what, pod.Spec.Containers[0].Image)
		case state.Waiting != nil && state.Waiting.Reason == "CreateContainerConfigError":
			return fmt.Errorf("the volume has no folder %s: %s. An older version of Deckhand ran the Run, or it ended before it began", p.folder, what)
		case p.Now().After(until):
			return fmt.Errorf("pod %s, which reads the files, does not start: %s. To wait longer, use --timeout", pod.Name, what)
		case what != said:
			said = what
			fmt.Fprintf(p.Err, "Waiting for pod %s, which reads the files: %s\n", pod.Name, what)
		}
		if err := p.pause(ctx); err != nil {
			return err
		}
	}
}

// filesPodState returns the state of the container, and why it does not run.
func filesPodState(pod *corev1.Pod) (corev1.ContainerState, string) {
	what := "it is not scheduled"
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Message != "" {
			what = c.Message
		}
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			what = "its volume is being mounted"
		}
	}
	if len(pod.Status.ContainerStatuses) == 0 {
		return corev1.ContainerState{}, untrusted.Line(cmp.Or(pod.Status.Message, what), 400)
	}
	state := pod.Status.ContainerStatuses[0].State
	return state, untrusted.Line(containerState(state), 400)
}

// receive has a container send files, and has extract read their archive.
func (p filesPods) receive(ctx context.Context, at container, from string, extract func(io.Reader) error) error {
	execute, err := executor(p.Factory)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reader, writer := io.Pipe()
	said := &bounded{limit: 4096}
	sent := make(chan error, 1)
	go func() {
		// The program of the first process is that of the runner, wherever its image keeps it.
		err := execute(ctx, at, []string{"/proc/1/exe", task.FilesMode, from}, writer, said)
		sent <- err
		_ = writer.CloseWithError(err)
	}()
	extractErr := extract(reader)
	cancelled := extractErr != nil && ctx.Err() == nil && len(sent) == 0
	if cancelled {
		cancel()
	}
	_ = reader.CloseWithError(io.ErrClosedPipe)
	sendErr := <-sent
	switch {
	case sendErr != nil && !cancelled && said.Len() > 0:
		return notSent(p.run, said.String())
	case sendErr != nil && !cancelled:
		return fmt.Errorf("reading files in pod %s: %w", at.pod, sendErr)
	}
	return extractErr
}

// executor returns what executes commands in containers.
func executor(f *Factory) (podExecutor, error) {
	if f.exec != nil {
		return f.exec, nil
	}
	config, err := f.config.ClientConfig()
	if err != nil {
		return nil, err
	}
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, in container, command []string, stdout, stderr io.Writer) error {
		url := core.RESTClient().Post().Resource("pods").Namespace(in.namespace).Name(in.pod).SubResource("exec").
			VersionedParams(&corev1.PodExecOptions{Container: in.name, Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
		websocket, err := remotecommand.NewWebSocketExecutor(config, "GET", url.String())
		if err != nil {
			return err
		}
		spdy, err := remotecommand.NewSPDYExecutor(config, "POST", url)
		if err != nil {
			return err
		}
		executor, err := remotecommand.NewFallbackExecutor(websocket, spdy, func(err error) bool {
			return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
		})
		if err != nil {
			return err
		}
		return executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: stdout, Stderr: stderr})
	}, nil
}

// keptUntil returns until when the claim with the files of a finished Run exists. It is zero
// if the claim belongs to the parent of the Run, or is deleted with the pods.
func keptUntil(run *v1alpha1.Run, claim *corev1.PersistentVolumeClaim, now time.Time) time.Time {
	if run.Status.CompletionTime == nil || !metav1.IsControlledBy(claim, run) {
		return time.Time{}
	}
	expired, left := runnerpod.RetentionExpired(run, claim, now)
	if expired {
		return time.Time{}
	}
	return now.Add(left)
}
