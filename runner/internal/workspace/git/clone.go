package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"

	"github.com/deckhand-dev/deckhand/runner/internal/redact"
)

// Want is what to clone.
type Want struct {
	// Revision is a branch, a tag or a commit, in whole or from its first four
	// digits on; empty: the default branch.
	Revision string
	// Depth is how many commits of the history to have; 0: all.
	Depth int
}

// A Head is the result of a clone.
type Head struct {
	// Commit is the commit of the revision.
	Commit string `json:"commit"`
	// Branch is its name without refs/heads/; empty where the revision was no
	// branch.
	Branch string `json:"branch,omitempty"`
	// Tag is its name without refs/tags/, and Tagged the object that the tag is.
	Tag    string `json:"tag,omitempty"`
	Tagged string `json:"tagged,omitempty"`
	// Notes are for the log.
	Notes []string `json:"-"`
}

// Clone clones one revision with its history as a bare repository, into a directory that does not exist.
func (r *Remote) Clone(ctx context.Context, dir string, want Want) (Head, error) {
	head, err := r.clone(ctx, dir, want)
	if err != nil {
		return Head{}, redactError(fmt.Errorf("cloning %s: %w", r.at.text, err), r.secrets)
	}
	return head, nil
}

func (r *Remote) clone(ctx context.Context, dir string, want Want) (Head, error) {
	t, err := r.transport.open(ctx, uploadPack)
	if err != nil {
		return Head{}, err
	}
	g, err := resolve(t.refs(), want.Revision, want.Depth)
	if err == nil {
		err = create(dir)
	}
	if err == nil {
		err = receive(ctx, t, dir, g)
	}
	if err := errors.Join(err, t.Close()); err != nil {
		return Head{}, err
	}
	store, err := Open(dir)
	if err != nil {
		return Head{}, err
	}
	defer store.Close()
	return store.resolveHead(g)
}

// receive asks for a pack and puts it into the repository.
func receive(ctx context.Context, t packSession, dir string, g cloneRequest) error {
	request := packp.NewUploadPackRequestFromCapabilities(t.refs().Capabilities)
	request.Capabilities.Delete(capability.ThinPack) // there is nothing yet that it could build on
	if t.refs().Capabilities.Supports(capability.NoProgress) {
		_ = request.Capabilities.Set(capability.NoProgress) // fails for one that takes arguments
	}
	request.Capabilities.Delete(capability.Agent)
	request.Wants, request.Depth = g.wants, packp.DepthCommits(g.depth)
	if g.depth > 0 {
		_ = request.Capabilities.Set(capability.Shallow)
	}
	var body bytes.Buffer
	err := request.UploadRequest.Encode(&body)
	if err := errors.Join(err, pktline.NewEncoder(&body).EncodeString("done\n")); err != nil {
		return fmt.Errorf("asking for the commits: %w", err)
	}
	answer, err := t.ask(ctx, &body, int64(body.Len()))
	if err != nil {
		return err
	}
	defer answer.Close()
	return errors.Join(ctx.Err(), unpack(request, bufio.NewReader(answer), dir))
}

// unpack reads the answer: where the history is cut, and the pack.
func unpack(request *packp.UploadPackRequest, answer *bufio.Reader, dir string) error {
	var shallow packp.ShallowUpdate
	if !request.Depth.IsZero() {
		if err := shallow.Decode(answer); err != nil {
			return refusalOf(fmt.Errorf("reading where the history is cut: %w", err))
		}
	}
	var acknowledged packp.ServerResponse
	if err := acknowledged.Decode(answer, false); err != nil {
		return refusalOf(fmt.Errorf("reading the answer of the git server: %w", err))
	}
	store, err := Open(dir)
	if err != nil {
		return err
	}
	pack := newPackReader(demuxSideband(request.Capabilities, answer, io.Discard))
	err = pack.close(volumeFull(packfile.UpdateObjectStorage(store.storage, pack)))
	if err := errors.Join(err, store.Close()); err != nil {
		return fmt.Errorf("receiving the commits: %w", err)
	}
	return writeShallow(dir, shallow.Shallows)
}

// refusalOf returns a RefusedError for the error line that a server sent instead of data, since a retry would get the
// same.
func refusalOf(err error) error {
	if line, ok := errors.AsType[*pktline.ErrorLine](err); ok {
		return Refused("The git server refuses: %s.", printable(line.Text))
	}
	return err
}

// demuxSideband returns the data in an answer; progress messages of the server go to a writer.
func demuxSideband(c *capability.List, answer io.Reader, progress io.Writer) io.Reader {
	kind := sideband.Sideband64k
	switch {
	case c.Supports(capability.Sideband64k):
	case c.Supports(capability.Sideband):
		kind = sideband.Sideband
	default:
		return answer
	}
	d := sideband.NewDemuxer(kind, answer)
	d.Progress = progress
	return d
}

func writeShallow(dir string, cut []plumbing.Hash) error {
	if len(cut) == 0 {
		return nil
	}
	var lines strings.Builder
	for _, h := range cut {
		lines.WriteString(h.String() + "\n")
	}
	if err := os.WriteFile(dir+"/shallow", []byte(lines.String()), 0o600); err != nil {
		return fmt.Errorf("noting where the history is cut: %w", err)
	}
	return nil
}

// resolveHead finds the commit that a clone was for.
func (s *Store) resolveHead(g cloneRequest) (Head, error) {
	found, err := s.abbreviated(g.commit)
	if err != nil {
		return Head{}, err
	}
	commit, err := s.peel(found)
	if err != nil {
		return Head{}, err
	}
	h := Head{Commit: commit.String(), Notes: g.notes}
	if err := g.ref.Validate(); g.ref != "" && err != nil { // it is written to files of git, which have their own syntax
		return Head{}, Refused("The repository has a name that git does not allow (%q): rename it, or name the commit instead.", printable(string(g.ref)))
	}
	if name, ok := strings.CutPrefix(string(g.ref), headsPrefix); ok {
		h.Branch = name
	}
	if name, ok := strings.CutPrefix(string(g.ref), tagsPrefix); ok {
		h.Tag, h.Tagged = name, found.String()
	}
	return h, nil
}

// maxBuffer is the maximum size of a request that is sent with its length, in bytes; larger ones are sent in chunks, as
// git does.
const maxBuffer = 1 << 20

// Push moves a branch to a commit, never by force. choose gets the tip of the branch on the server, empty if there is
// no such branch, and returns the commit to push: a child of that tip, the tip itself, or none to leave the branch
// unchanged. The server moves the branch only if it still has that tip. The server must already have the parent of the
// commit.
func (r *Remote) Push(ctx context.Context, s *Store, branch string, choose func(tip string) (string, error)) error {
	if err := r.push(ctx, s, branch, choose); err != nil {
		return redactError(fmt.Errorf("publishing to %s: %w", r.at.text, err), r.secrets)
	}
	return nil
}

func (r *Remote) push(ctx context.Context, s *Store, branch string, choose func(string) (string, error)) error {
	name := plumbing.NewBranchReferenceName(branch)
	if err := name.Validate(); err != nil {
		return Refused("%q is no name that git allows for a branch.", printable(branch))
	}
	t, err := r.transport.open(ctx, receivePack)
	if err != nil {
		return err
	}
	command := &packp.Command{Name: name, Old: t.refs().References[string(name)]}
	tip := ""
	if !command.Old.IsZero() {
		tip = command.Old.String()
	}
	commit, err := choose(tip)
	if err == nil && commit != "" && commit != tip {
		command.New = plumbing.NewHash(commit)
		err = r.send(ctx, t, s, command)
	}
	return errors.Join(err, ctx.Err(), t.Close())
}

// send sends the command with the objects that the server does not have, and reads the
// result.
func (r *Remote) send(ctx context.Context, t packSession, s *Store, command *packp.Command) error {
	objects, err := s.missing(command.New)
	if err != nil {
		return err
	}
	request := packp.NewReferenceUpdateRequest()
	request.Commands = []*packp.Command{command}
	for _, one := range []capability.Capability{capability.ReportStatus, capability.Sideband64k} {
		if t.refs().Capabilities.Supports(one) {
			_ = request.Capabilities.Set(one) // fails for one that takes arguments
		}
	}
	var head bytes.Buffer
	if err := request.Encode(&head); err != nil {
		return fmt.Errorf("asking for the branch: %w", err)
	}
	pack, w := io.Pipe()
	written := make(chan struct{})
	go func() {
		defer close(written)
		w.CloseWithError(s.writePack(ctx, w, objects))
	}()
	defer func() {
		_ = pack.Close() // ends the goroutine if the body was not read
		<-written
	}()
	body, length, err := bufferSmall(io.MultiReader(&head, pack))
	if err != nil {
		return err
	}
	answer, err := t.ask(ctx, body, length)
	if err != nil {
		return err
	}
	defer answer.Close()
	return r.readStatus(request, answer)
}

// missing returns the objects of a commit that its parent does not have.
func (s *Store) missing(commit plumbing.Hash) ([]plumbing.Hash, error) {
	data, err := s.readAll(plumbing.CommitObject, commit)
	if err != nil {
		return nil, err
	}
	before, err := s.treeOf(field(data, "parent"))
	if err != nil {
		return nil, err
	}
	d := &diff{store: s, seen: map[plumbing.Hash]bool{}}
	d.send(commit)
	err = d.trees(before, plumbing.NewHash(field(data, "tree")))
	return d.objects, err
}

// bufferSmall returns a body with its length, which is -1 for a large one.
func bufferSmall(body io.Reader) (io.Reader, int64, error) {
	start := make([]byte, maxBuffer)
	n, err := io.ReadFull(body, start)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return bytes.NewReader(start[:n]), int64(n), nil
	case err != nil:
		return nil, 0, err
	default:
		return io.MultiReader(bytes.NewReader(start), body), -1, nil
	}
}

// readStatus reads the result of a push.
func (r *Remote) readStatus(request *packp.ReferenceUpdateRequest, answer io.Reader) error {
	messages := &remoteMessages{}
	report := packp.NewReportStatus()
	if err := report.Decode(demuxSideband(request.Capabilities, answer, messages)); err != nil {
		return refusalOf(fmt.Errorf("reading the state of the branch: %w", errors.Join(err, remoteError(messages))))
	}
	if report.UnpackStatus != "ok" {
		return Refused("%s did not take the commit (%s).", r.at.text, statusReason(report.UnpackStatus, messages))
	}
	for _, one := range report.CommandStatuses {
		if one.Status != "ok" {
			return Refused("%s did not take the branch %q (%s): change what forbids it there, or delete the branch if it is of an older Run.", r.at.text, one.ReferenceName.Short(), statusReason(one.Status, messages))
		}
	}
	if len(report.CommandStatuses) == 0 {
		return fmt.Errorf("%s did not report the state of the branch", r.at.text)
	}
	return nil
}

// statusReason returns the status that a server reported, with its messages, which may come from a hook.
func statusReason(status string, messages *remoteMessages) string {
	return strings.Join(strings.Fields(printable(status)+" "+messages.String()), " ")
}

func remoteError(messages *remoteMessages) error {
	if said := messages.String(); said != "" {
		return errors.New(said)
	}
	return nil
}

// maxWords bounds a quotation of a server, in bytes.
const maxWords = 512

// A RefusedError means that a user must change something, and describes it. Any other error may be transient.
type RefusedError struct {
	// Message is a sentence for users.
	Message string
}

func (e *RefusedError) Error() string { return e.Message }

// Refused returns a RefusedError.
func Refused(format string, args ...any) *RefusedError {
	return &RefusedError{Message: fmt.Sprintf(format, args...)}
}

// A hiddenError is an error without the credentials in its text. It can be compared by
// errors.Is, but not unwrapped.
type hiddenError struct {
	text string
	err  error
}

func (e *hiddenError) Error() string        { return e.text }
func (e *hiddenError) Is(target error) bool { return errors.Is(e.err, target) }

// redactError removes the credentials from the text of an error.
func redactError(err error, secrets *redact.Redactor) error {
	if err == nil {
		return nil
	}
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return &RefusedError{Message: secrets.String(refused.Message)}
	}
	return &hiddenError{text: secrets.String(err.Error()), err: err}
}

// during adds the current operation to an error, except to a RefusedError, whose message is a sentence.
func during(doing string, err error) error {
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return refused
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// printable returns text of a server in a form for messages.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxWords {
		s = strings.ToValidUTF8(s[:maxWords], "") + "…"
	}
	return s
}
