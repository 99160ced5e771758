package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/requests"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// filesPodOptions configure a pod that reads a volume.
type filesPodOptions struct {
	image   string
	timeout time.Duration
}

// filesPodTimeout is the default time that a command waits for a pod.
const filesPodTimeout = 2 * time.Minute

func (o *filesPodOptions) bind(c *cobra.Command) {
	c.Flags().StringVar(&o.image, "image", "", "Image of the pod that reads the volume of a finished Run; by default that of the runner")
	c.Flags().DurationVar(&o.timeout, "timeout", filesPodTimeout, "How long to wait for this pod")
}

// filesPods finds or creates a pod that has the files of a Run.
type filesPods struct {
	*Factory
	client client.Client
	run    *v1alpha1.Run
	o      filesPodOptions
	// folder is the folder of the claim that a pod mounts.
	folder string
}

// find returns a container that has the files, and a function to call when they have been read: it deletes a pod that
// was created for them.
func (p filesPods) find(ctx context.Context) (container, func(), error) {
	nothing := func() {}
	var pods corev1.PodList
	if err := p.client.List(ctx, &pods, client.InNamespace(p.run.Namespace)); err != nil {
		return container{}, nil, err
	}
	own := podReaderOf(p.Factory, p.client).proven(p.run, pods.Items)
	for i := range own {
		if status := runnerpod.RunnerStatus(&own[i]); !isFinished(p.run) && status != nil && status.State.Running != nil {
			if err := p.requireRights(ctx, "create pods/exec"); err != nil {
				return container{}, nil, err
			}
			return container{&own[i], runnerpod.RunnerContainer}, nothing, nil
		}
	}
	return p.onVolume(ctx, pods.Items)
}

// onVolume creates a container that mounts the folder of the claim, and returns the results of find. pods are the pods
// of the namespace, one of which may use the claim.
func (p filesPods) onVolume(ctx context.Context, pods []corev1.Pod) (container, func(), error) {
	claim, err := p.claim(ctx)
	if err != nil {
		return container{}, nil, err
	}
	node, err := nodeThatMounts(claim, pods)
	if err != nil {
		return container{}, nil, err
	}
	if err := p.requireRights(ctx, "create pods", "get pods", "delete pods", "create pods/exec"); err != nil {
		return container{}, nil, err
	}
	p.removeEnded(ctx, pods)
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
		return nil, fmt.Errorf("the files of Run %s were deleted with PersistentVolumeClaim %s. To keep files for longer, set retention.volume of Agent %s", p.run.Name, name, p.run.Spec.Agent)
	case err != nil:
		return nil, err
	case claim.DeletionTimestamp != nil:
		return nil, fmt.Errorf("the files of Run %s are being deleted with PersistentVolumeClaim %s. To keep files for longer, set retention.volume of Agent %s", p.run.Name, name, p.run.Spec.Agent)
	}
	return &claim, nil
}

// nodeThatMounts returns the cluster node on which a claim must be mounted, because a pod there uses
// it already; empty: any.
func nodeThatMounts(claim *corev1.PersistentVolumeClaim, pods []corev1.Pod) (string, error) {
	pods = slices.Clone(pods)
	slices.SortStableFunc(pods, func(a, b corev1.Pod) int { return cmp.Compare(rankOfUser(a), rankOfUser(b)) })
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

// rankOfUser orders the pods that use a claim by how reliably they show where it is mounted: runner pods on a cluster
// node, which no user creates, then other pods on a cluster node, then the rest.
func rankOfUser(pod corev1.Pod) int {
	switch {
	case pod.Spec.NodeName == "":
		return 2
	case pod.Spec.ServiceAccountName != v1alpha1.RunnerServiceAccount:
		return 1
	}
	return 0
}

// requireRights returns an error that names the missing permissions. It is checked first, because a pod could otherwise
// be created and then neither used nor deleted.
func (p filesPods) requireRights(ctx context.Context, rights ...string) error {
	missing, err := missingRights(ctx, p.client, p.run.Namespace, rights...)
	if err != nil || len(missing) == 0 {
		return err
	}
	return fmt.Errorf("you may not %s in namespace %s, which reading the files needs. Ask an administrator to bind the ClusterRole edit to you in this namespace", strings.Join(missing, ", "), p.run.Namespace)
}

// create creates a pod that reads the claim, and waits until it runs.
func (p filesPods) create(ctx context.Context, claim *corev1.PersistentVolumeClaim, node string) (container, func(), error) {
	how := runnerpod.FilesPodOf(claim)
	how.Image = cmp.Or(p.o.image, how.Image)
	if how.Image == "" {
		return container{}, nil, fmt.Errorf("PersistentVolumeClaim %s does not name the image of the runner, because an older version of Deckhand created it. Name it with --image", claim.Name)
	}
	pod := how.Pod(p.run, claim.Name, p.folder, node)
	if err := p.createWhole(ctx, pod); err != nil {
		return container{}, nil, err
	}
	release := func() { p.remove(ctx, pod) }
	if err := p.await(ctx, pod); err != nil {
		release()
		return container{}, nil, err
	}
	return container{pod, runnerpod.FilesContainer}, release, nil
}

// createWhole creates the pod. It waits for the answer of the API server even if ctx ends, because a pod with an
// unknown name cannot be deleted.
func (p filesPods) createWhole(ctx context.Context, pod *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return p.client.Create(ctx, pod)
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
	until, said := p.Now().Add(cmp.Or(p.o.timeout, filesPodTimeout)), ""
	for {
		err := p.refresh(ctx, pod)
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("pod %s, which reads the files, was deleted before it ran. Run %s may have been deleted: see %s. Otherwise try again", pod.Name, p.run.Name, requests.Command("why", p.run))
		}
		if err != nil {
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

// refresh reads a pod again. If another pod has its name, it is not found.
func (p filesPods) refresh(ctx context.Context, pod *corev1.Pod) error {
	var now corev1.Pod
	if err := p.client.Get(ctx, client.ObjectKeyFromObject(pod), &now); err != nil {
		return err
	}
	if now.UID != pod.UID {
		return apierrors.NewNotFound(corev1.Resource("pods"), pod.Name)
	}
	*pod = now
	return nil
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

// A container is a container of a pod.
type container struct {
	pod  *corev1.Pod
	name string
}

// A podExecutor executes a command in a container.
type podExecutor func(ctx context.Context, in container, command []string, stdout, stderr io.Writer) error

// receive makes a container send files, and passes their archive to extract.
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
		// The first process is the runner, whose path depends on its image.
		err := execute(ctx, at, []string{"/proc/1/exe", task.FilesMode, from}, writer, said)
		sent <- err
		_ = writer.CloseWithError(err)
	}()
	extractErr := p.extractFrom(ctx, at.pod, reader, extract)
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
		return fmt.Errorf("reading files in pod %s: %w. The rest is missing: try again", at.pod.Name, sendErr)
	}
	return extractErr
}

// extractFrom extracts an archive that a pod sends. Commands are executed by the name of a pod, and a user who may
// delete and create pods can replace it: nothing is extracted unless the original pod still exists when the first byte
// has arrived.
func (p filesPods) extractFrom(ctx context.Context, pod *corev1.Pod, archive io.Reader, extract func(io.Reader) error) error {
	sent := bufio.NewReader(archive)
	if _, err := sent.Peek(1); err == nil {
		exists, err := podReaderOf(p.Factory, p.client).exists(ctx, pod)
		if err != nil {
			return err
		}
		if !exists {
			return fmt.Errorf("pod %s was replaced while its files were read, so nothing was copied: try again", pod.Name)
		}
	}
	return extract(sent)
}

// executor returns a function that executes commands in containers.
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
		url := core.RESTClient().Post().Resource("pods").Namespace(in.pod.Namespace).Name(in.pod.Name).SubResource("exec").
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
