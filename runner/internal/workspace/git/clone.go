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

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
)

// Want is what to clone.
type Want struct {
	// Revision is a branch, a tag or a commit, in whole or from its first four
	// digits on; empty: the default branch.
	Revision string
	// Depth is how many commits of the history to have; 0: all.
	Depth int
}

// A Head is what a clone came to.
type Head struct {
	// Commit is what the revision stood for.
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

// Clone makes a bare repository in a directory that does not exist, of one
// revision and the history of it.
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

// refusalOf makes a RefusedError of the error line that a server answered instead of
// data, since a retry would get the same.
func refusalOf(err error) error {
	if line, ok := errors.AsType[*pktline.ErrorLine](err); ok {
		return Refused("The git server refuses: %s.", printable(line.Text))
	}
	return err
}

// demuxSideband reads the part of an answer that is data; what the server tells of its
// progress goes to a writer.
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
