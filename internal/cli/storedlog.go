package cli

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/requests"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/runner/events"
)

// maxEvents bounds the events that are read of a volume. A runner keeps 8 MiB.
const maxEvents = 64 << 20

// isStored reports whether the volume of a finished Run may have its events.
func isStored(run *v1alpha1.Run) bool {
	return isFinished(run) && run.Status.Attempt != nil && run.Status.Attempt.VolumeClaim != ""
}

// readDeleted prints the events of a finished Run whose pods were deleted, from its volume. Without
// a volume it prints the result.
func (r *logReader) readDeleted(ctx context.Context, run *v1alpha1.Run) error {
	switch {
	case run.Status.Attempt == nil && run.Status.Progress == nil:
		r.say("Run " + run.Name + " ended before it had a pod.")
	case !isStored(run):
		r.say("The pods of Run " + run.Name + " and their logs were deleted. A pod that ends by itself stays for retention.pod of the Agent. The result:")
	case r.prefix != "":
		r.say("The pods of Run " + run.Name + " and their logs were deleted. To read its volume: " + requests.Command("logs", run) + ". The result:")
	default:
		err := r.readVolume(ctx, run)
		if err == nil || r.printer.Err() != nil { // or nobody reads the output any more
			return err
		}
		r.say("The pods of Run " + run.Name + " and their logs were deleted, and its volume was not read. The result:")
		printResult(r.out, run)
		return err
	}
	printResult(r.out, run)
	return nil
}

// readVolume prints the events on the volume of a Run. It reads all of them before it prints, so that the pod need not
// wait for a slow reader.
func (r *logReader) readVolume(ctx context.Context, run *v1alpha1.Run) error {
	var lines bytes.Buffer
	if err := r.receiveEvents(ctx, run, &lines); err != nil {
		return err
	}
	out := &attemptFilter{out: r.printer}
	if r.o.attempt > 0 {
		out.attempts = []int{r.o.attempt}
	}
	if _, err := io.Copy(out, r.o.window.reader(io.NopCloser(&lines))); err != nil {
		return err
	}
	if r.o.window.from.IsZero() && r.o.attempt > 0 && len(out.passed) == 0 {
		return fmt.Errorf("the volume of Run %s has no events of attempt %d: it keeps the last events of a Run. To read what it has: %s", run.Name, r.o.attempt, requests.Command("logs", run))
	}
	if r.o.window.from.IsZero() && out.first != nil && (out.first.Attempt > 1 || out.first.N > 1) && r.o.attempt == 0 {
		r.say("The volume keeps the last events of a Run: the beginning of its conversation may be missing.")
	}
	return out.Close()
}

// A missingLog has the events of attempts without pods, until they are printed.
type missingLog struct {
	attempts []int
	events   []byte
}

// readMissing reads events of attempts whose pods were deleted from the volume, although pods of other attempts exist
// or follow. That needs a pod. A followed log does not wait
// for a pod, and logs of child Runs create none: they name the command instead.
func (r *logReader) readMissing(ctx context.Context, run *v1alpha1.Run, pods []corev1.Pod) (missingLog, error) {
	m := missingLog{attempts: r.withoutPod(run, pods)}
	if len(m.attempts) == 0 || run.Status.Attempt.VolumeClaim == "" || isFinished(run) && len(pods) == 0 {
		return missingLog{}, nil
	}
	var lines bytes.Buffer
	err := errNotReadNow
	isStarting := slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Spec.NodeName == "" })
	if !r.o.follow && r.prefix == "" && !isStarting { // the volume could be mounted where that pod is not
		err = r.receiveEvents(ctx, run, &lines)
	}
	switch {
	case err != nil && r.o.attempt > 0 && !errors.Is(err, errNotReadNow):
		return missingLog{}, fmt.Errorf("the pod of attempt %d of Run %s was deleted, and its conversation was not read from the volume: %w", r.o.attempt, run.Name, err)
	case err != nil:
		r.sayOnVolume(run, m.attempts, err)
		return missingLog{}, nil
	}
	m.events = lines.Bytes()
	return m, nil
}

// errNotReadNow is why a followed log, or that of a child Run, is not read from the volume.
var errNotReadNow = errors.New("this needs another pod")

// sayOnVolume names the attempts whose events are only on the volume, and how to read them.
func (r *logReader) sayOnVolume(run *v1alpha1.Run, attempts []int, cause error) {
	why := ""
	if !errors.Is(cause, errNotReadNow) {
		why = ", and was not read: " + explain(cause)
	}
	var commands []string
	for _, n := range attempts {
		r.known[n] = true
		commands = append(commands, requests.Command("logs", run, "--attempt", strconv.Itoa(n)))
	}
	r.say(fmt.Sprintf("The pods of %s of Run %s were deleted. Their conversation is on the volume of the Run%s. To read it: %s",
		attemptNames(attempts), run.Name, why, strings.Join(commands, "; ")))
}

func attemptNames(attempts []int) string {
	var names []string
	for _, n := range attempts {
		names = append(names, strconv.Itoa(n))
	}
	if len(names) == 1 {
		return "attempt " + names[0]
	}
	return "attempts " + strings.Join(names, ", ")
}

// withoutPod returns the attempts that had a pod which does not exist any more, and whose log was not
// read. The current attempt of an active Run has had one if the status has its UID.
func (r *logReader) withoutPod(run *v1alpha1.Run, pods []corev1.Pod) []int {
	if run.Status.Attempt == nil {
		return nil
	}
	var missing []int
	current, podUID := currentAttempt(run)
	for n := 1; n <= current; n++ {
		isWanted := r.o.attempt == 0 || r.o.attempt == n
		hasPod := slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return runnerpod.AttemptOf(&pod) == n })
		if isWanted && !hasPod && !r.known[n] && (n < current || podUID != "") {
			missing = append(missing, n)
		}
	}
	return missing
}

// printMissing prints the events of the attempts before one, which then count as known.
func (r *logReader) printMissing(m *missingLog, before int) error {
	next := slices.IndexFunc(m.attempts, func(n int) bool { return n >= before })
	if next < 0 {
		next = len(m.attempts)
	}
	if next == 0 {
		return nil
	}
	out := &attemptFilter{out: r.printer, attempts: m.attempts[:next]}
	m.attempts = m.attempts[next:]
	if _, err := out.Write(m.events); err != nil {
		return err
	}
	for n := range out.passed {
		r.opened, r.known[n] = true, true
	}
	return r.printer.EndLog()
}

// receiveEvents reads the events on the volume of a Run, in a pod that mounts nothing else. The runner of a later
// attempt may append to the files meanwhile; the archive has their content at the start.
func (r *logReader) receiveEvents(ctx context.Context, run *v1alpha1.Run, to io.Writer) error {
	pods := filesPods{Factory: r.f, client: r.client, run: run, o: r.o.pod, folder: runnerpod.EventsFolder(run)}
	var all corev1.PodList
	if err := r.client.List(ctx, &all, client.InNamespace(run.Namespace)); err != nil {
		return err
	}
	at, release, err := pods.onVolume(ctx, all.Items)
	if err != nil {
		return err
	}
	defer release()
	return pods.receive(ctx, at, ".", func(archive io.Reader) error { return readEvents(to, archive) })
}

// readEvents writes the files of an archive one after another, in the order in which they were written.
func readEvents(out io.Writer, archive io.Reader) error {
	files, read := tar.NewReader(archive), int64(0)
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, archive)
			return err
		}
		if err != nil {
			return archiveError(err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if read += header.Size; read > maxEvents {
			return fmt.Errorf("the volume has more than %s of events: read it in a pod of your own", size(maxEvents))
		}
		if _, err := io.CopyN(out, files, header.Size); err != nil {
			return fmt.Errorf("reading the events: %w", err)
		}
	}
}

// An attemptFilter passes the events of some attempts, or all events if attempts is empty.
type attemptFilter struct {
	out      io.Writer
	attempts []int
	partial  []byte
	// passed are the attempts whose events were passed on.
	passed map[int]bool
	// first is the first event, of any attempt.
	first *events.Line
}

func (f *attemptFilter) Write(text []byte) (int, error) {
	f.partial = append(f.partial, text...)
	for {
		end := bytes.IndexByte(f.partial, '\n')
		if end < 0 {
			return len(text), nil
		}
		if err := f.pass(f.partial[:end+1]); err != nil {
			return 0, err
		}
		f.partial = f.partial[end+1:]
	}
}

func (f *attemptFilter) pass(line []byte) error {
	var e events.Line
	isEvent := json.Unmarshal(line, &e) == nil
	if isEvent && f.first == nil {
		f.first = &e
	}
	if len(f.attempts) > 0 && (!isEvent || !slices.Contains(f.attempts, e.Attempt)) {
		return nil
	}
	if f.passed == nil {
		f.passed = map[int]bool{}
	}
	f.passed[e.Attempt] = true
	_, err := f.out.Write(line)
	return err
}

// Close passes on the incomplete last line.
func (f *attemptFilter) Close() error {
	if len(f.partial) == 0 {
		return nil
	}
	return f.pass(append(f.partial, '\n'))
}
