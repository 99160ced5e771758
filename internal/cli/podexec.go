package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/deckhand-dev/deckhand/runner/task"
)

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
