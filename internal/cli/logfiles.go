package cli

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// maxEventLine is the longest line with a part of a file. Longer lines are other events.
const maxEventLine = 64 << 10

// loggedFiles are the files that a log has. A custom runner may write anything, so the files are
// bounded here too.
type loggedFiles struct {
	parts map[string]*bytes.Buffer
	bytes int
	// list is the last event about files, or nil.
	list *events.Files
}

// copyFromLog copies files of a finished Run without a volume from the log of its last pod.
func (c copier) copyFromLog(ctx context.Context, api client.Client, run *v1alpha1.Run, from string, e *extractor) error {
	files, err := readLog(ctx, podReaderOf(c.Factory, api), run)
	if err != nil {
		return err
	}
	keep := fmt.Sprintf("To keep all files, set workspace.durability: Volume of Agent %s and create a new Run", run.Spec.Agent)
	if files.list == nil {
		return fmt.Errorf("the log of pod %s has no files: the Run made none, or its Agent has log: None, or the kubelet rotated the log. %s", run.Status.Attempt.Pod, keep)
	}
	chosen, missing := files.choose(from)
	if len(chosen) == 0 && len(missing) == 0 {
		return fmt.Errorf("%s is not in the log of pod %s, which has: %s. %s", untrusted.Line(from, 400), run.Status.Attempt.Pod, files.names(), keep)
	}
	if len(chosen) > 0 {
		archive, err := files.archive(from, chosen)
		if err != nil {
			return err
		}
		if err := e.extract(archive); err != nil {
			return err
		}
		c.reportCopied(e)
	}
	if len(missing) > 0 {
		return fmt.Errorf("not in the log of pod %s: %s. %s", run.Status.Attempt.Pod, strings.Join(missing, ", "), keep)
	}
	return nil
}

// readLog reads the files in the log of the last pod of a Run, to its last event.
func readLog(ctx context.Context, pods *podReader, run *v1alpha1.Run) (*loggedFiles, error) {
	gone := fmt.Errorf("the files of Run %s were in the log of its pod, which was deleted. To keep pods for longer, set retention.pod of Agent %s; to keep files, set workspace.durability: Volume, and create a new Run", run.Name, run.Spec.Agent)
	if run.Status.Attempt == nil || run.Status.Attempt.Pod == "" {
		return nil, fmt.Errorf("run %s had no pod, so it has no files: %s", run.Name, untrusted.Line(message(run), 400))
	}
	pod, err := pods.last(ctx, run)
	switch {
	case err != nil:
		return nil, err
	case pod == nil:
		return nil, gone
	}
	// The runner may still be writing: the log is followed until its last event.
	stream, err := pods.openLog(ctx, pod, &corev1.PodLogOptions{Container: runnerContainer, Follow: true})
	switch {
	case apierrors.IsNotFound(err):
		return nil, gone
	case err != nil:
		return nil, err
	}
	defer stream.Close()
	files := &loggedFiles{parts: map[string]*bytes.Buffer{}}
	if err := files.read(stream); err != nil {
		return nil, fmt.Errorf("reading the log of pod %s: %w", pod.Name, err)
	}
	return files, nil
}

// read reads a log until the runner has ended.
func (l *loggedFiles) read(log io.Reader) error {
	lines := bufio.NewReaderSize(log, maxEventLine)
	for long := false; ; {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = true
			continue
		}
		if !long && l.add(line) {
			return nil
		}
		long = false
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// add adds a line of the log, and reports whether it is the last.
func (l *loggedFiles) add(line []byte) (last bool) {
	var e events.Line
	if json.Unmarshal(line, &e) != nil {
		return false
	}
	switch e.Type { //nolint:exhaustive // the others are not about files
	case step.EventFile:
		var part events.File
		if json.Unmarshal(e.Data, &part) == nil {
			l.addPart(part)
		}
	case step.EventFiles:
		var list events.Files
		if json.Unmarshal(e.Data, &list) == nil {
			l.list = &list
		}
	}
	return e.Type == step.EventRunFinished
}

// addPart adds a part of a file. The parts must be in order: if one is missing, the file does not match its digest.
func (l *loggedFiles) addPart(part events.File) {
	content := l.parts[part.Path]
	if content == nil {
		content = &bytes.Buffer{}
		l.parts[part.Path] = content
	}
	if part.Offset == int64(content.Len()) && l.bytes+len(part.Data) <= events.MaxLoggedBytes {
		l.bytes += len(part.Data)
		content.Write(part.Data)
	}
}

// choose returns the files at or below a path, and the missing ones with the reason.
func (l *loggedFiles) choose(from string) (chosen []events.LoggedFile, missing []string) {
	for _, f := range l.list.Files {
		switch {
		case !isBelow(from, f.Path):
		case !l.isComplete(f):
			missing = append(missing, untrusted.Line(f.Path, 200)+" (its beginning was lost when the kubelet rotated the log)")
		default:
			chosen = append(chosen, f)
		}
	}
	for _, f := range l.list.LeftOut {
		if isBelow(from, f.Path) {
			missing = append(missing, untrusted.Line(f.Path, 200)+" ("+untrusted.Line(whyNotLogged(f), 100)+")")
		}
	}
	if l.list.More > 0 && from == "." {
		missing = append(missing, fmt.Sprintf("%d more", l.list.More))
	}
	return chosen, missing
}

func (l *loggedFiles) isComplete(f events.LoggedFile) bool {
	content := l.parts[f.Path]
	if content == nil {
		return false
	}
	digest := sha256.Sum256(content.Bytes())
	return hex.EncodeToString(digest[:]) == f.SHA256
}

func isBelow(dir, name string) bool {
	return dir == "." || name == dir || strings.HasPrefix(name, dir+"/")
}

// whyNotLogged describes why the log does not have a file.
func whyNotLogged(f events.LeftOutFile) string {
	switch f.Reason {
	case events.LeftOutTooLarge:
		return size(f.Size) + ", and files in a log have at most " + size(events.MaxLoggedBytes) + " in all"
	case events.LeftOutTooMany:
		return fmt.Sprintf("a log has at most %d files", events.MaxLoggedFiles)
	case events.LeftOutNotFound:
		return "no file matches this pattern of output.files"
	case events.LeftOutPattern:
		return "this pattern of output.files is not valid"
	case events.LeftOutUnreadable:
		return "it could not be read"
	case events.LeftOutSecret:
		return "it is not text and has a secret"
	case events.LeftOutName:
		return "its name is not text in one line"
	}
	return f.Reason
}

// names returns the names of the files in the log, for an error.
func (l *loggedFiles) names() string {
	const most = 20
	var names []string
	for _, f := range l.list.Files[:min(len(l.list.Files), most)] {
		names = append(names, untrusted.Line(f.Path, 200))
	}
	if more := len(l.list.Files) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	if len(names) == 0 {
		return "no files"
	}
	return strings.Join(names, ", ")
}

// archive returns files as the archive that a pod would send.
func (l *loggedFiles) archive(from string, files []events.LoggedFile) (io.Reader, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	var err error
	if len(files) == 1 && files[0].Path == from {
		err = l.write(w, path.Base(from), files[0].Path)
		return &out, errors.Join(err, w.Close())
	}
	err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "./", Mode: 0o755})
	for _, f := range files {
		name := f.Path
		if from != "." {
			name = strings.TrimPrefix(name, from+"/")
		}
		if dir := path.Dir(name); dir != "." {
			err = errors.Join(err, w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}))
		}
		err = errors.Join(err, l.write(w, name, f.Path))
	}
	return &out, errors.Join(err, w.Close())
}

func (l *loggedFiles) write(w *tar.Writer, as, name string) error {
	content := l.parts[name].Bytes()
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: as, Size: int64(len(content)), Mode: 0o644}); err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	_, err := w.Write(content)
	return err
}
