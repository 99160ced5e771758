package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// maxBuffer is up to which size a request is sent with its length, in bytes;
// larger ones are sent in pieces, as git does.
const maxBuffer = 1 << 20

// Push brings a branch to a commit, never by force. The tip that the branch has
// on the server, empty if there is no such branch, is given to choose, which
// returns the commit that is to come after it, or the same, or none, to leave it
// as it is. The server moves the branch only if it still has that tip. The
// parent of the commit must be there already.
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

// statusReason returns the status that a server reported with its messages, which may
// be those of a hook.
func statusReason(status string, messages *remoteMessages) string {
	return strings.Join(strings.Fields(printable(status)+" "+messages.String()), " ")
}

func remoteError(messages *remoteMessages) error {
	if said := messages.String(); said != "" {
		return errors.New(said)
	}
	return nil
}
