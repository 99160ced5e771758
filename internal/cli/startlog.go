package cli

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/runner/task"
)

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
