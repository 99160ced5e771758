package cli

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/runnerpod"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// maxEvents bounds the events that are read of a volume. A runner keeps 8 MiB.
const maxEvents = 64 << 20

// isStored is whether the volume of a finished Run may have its events.
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
		r.say("The pods of Run " + run.Name + " and their logs were deleted. A pod that ends by itself stays for podRetention of the Agent. The result:")
	case r.prefix != "":
		r.say("The pods of Run " + run.Name + " and their logs were deleted. To read its volume: kubectl deckhand logs " + run.Name + ". The result:")
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

// readVolume prints the events on the volume of a Run. They are read whole before they are printed,
// so that their pod does not wait for somebody who reads.
func (r *logReader) readVolume(ctx context.Context, run *v1alpha1.Run) error {
	var events bytes.Buffer
	if err := r.receiveEvents(ctx, run, &events); err != nil {
		return err
	}
	out := &attemptFilter{out: r.printer, attempt: r.o.attempt}
	if _, err := events.WriteTo(out); err != nil {
		return err
	}
	if out.first != nil && (out.first.Attempt > 1 || out.first.N > 1) && r.o.attempt == 0 {
		r.say("The volume keeps the last events of a Run: the beginning of its conversation may be missing.")
	}
	return out.Close()
}

// receiveEvents reads the events on the volume of a Run, in a pod that mounts nothing else.
func (r *logReader) receiveEvents(ctx context.Context, run *v1alpha1.Run, to io.Writer) error {
	pods := filesPods{Factory: r.f, client: r.client, run: run, o: r.o.pod, folder: runnerpod.EventsFolder(run)}
	at, release, err := pods.find(ctx)
	if err != nil {
		return err
	}
	defer release()
	return pods.receive(ctx, at, ".", func(archive io.Reader) error { return readEvents(to, archive) })
}

// readEvents writes the files of an archive one after another. Their order in the archive is that
// in which they were written.
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

// An attemptFilter passes the events of one attempt, or of all if attempt is 0.
type attemptFilter struct {
	out     io.Writer
	attempt int
	partial []byte
	// first is the first event, of any attempt.
	first *step.Event
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
	var e step.Event
	isEvent := json.Unmarshal(line, &e) == nil
	if isEvent && f.first == nil {
		f.first = &e
	}
	if f.attempt > 0 && (!isEvent || e.Attempt != f.attempt) {
		return nil
	}
	_, err := f.out.Write(line)
	return err
}

// Close passes what the end of the events cut.
func (f *attemptFilter) Close() error {
	if len(f.partial) == 0 {
		return nil
	}
	return f.pass(append(f.partial, '\n'))
}
