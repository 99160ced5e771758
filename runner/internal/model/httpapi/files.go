package httpapi

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// FileLimits are a provider's own limits of images and documents, in addition to the general ones.
type FileLimits struct {
	// Files is how many a request may have; 0: model.MaxFiles.
	Files int
	// Side is the largest width and height of an image, in pixels; 0: any.
	Side int
}

// Why a file is not sent.
const (
	whyLeftOut  = "left out, because a request has a limited number and size of files; read it again if you need it"
	whyRefused  = "not shown, because the model provider refused it. Convert it to a small PNG, or go on without it"
	whyGone     = "not shown, because its bytes are no longer there"
	whyTooLarge = "not shown, because its model provider takes at most %d pixels in width and height. Scale it down, or cut out what matters"
)

// A Conversation is the session of a request as it is sent: a line of text replaces each image and document that is not
// sent.
type Conversation struct {
	Steps []step.Step
	// data holds the files that are sent, in base64.
	data map[string]string
}

// Base64 returns the bytes of a file of the steps.
func (c *Conversation) Base64(f *step.File) string { return c.data[f.Digest] }

// DataURL returns a file of the steps as a URL.
func (c *Conversation) DataURL(f *step.File) string {
	return "data:" + f.MediaType + ";base64," + c.data[f.Digest]
}

// conversationOf reads the files of a request, except those in refused steps and those beyond the limits.
func conversationOf(req *model.Request, refused map[int64]bool, limits FileLimits) *Conversation {
	c := &Conversation{Steps: limits.apply(req.Steps, refused), data: map[string]string{}}
	for i, s := range c.Steps {
		c.Steps[i] = s.WithoutFiles(func(p step.Part) string {
			if !c.read(req.Files, p.File) {
				return whyGone
			}
			return ""
		})
	}
	return c
}

// apply returns steps with a line of text instead of each file that is not sent, because of the limits or because its
// step was refused.
func (l FileLimits) apply(steps []step.Step, refused map[int64]bool) []step.Step {
	steps = slices.Clone(steps)
	for i, s := range steps {
		steps[i] = s.WithoutFiles(func(p step.Part) string {
			switch {
			case refused[s.Seq]:
				return whyRefused
			case l.Side > 0 && max(p.File.Width, p.File.Height) > l.Side:
				return fmt.Sprintf(whyTooLarge, l.Side)
			}
			return ""
		})
	}
	skip := surplus(steps, l.files())
	for i, s := range steps {
		steps[i] = s.WithoutFiles(func(step.Part) string {
			if skip == 0 {
				return ""
			}
			skip--
			return whyLeftOut
		})
	}
	return steps
}

// files returns how many files a request may have.
func (l FileLimits) files() int { return cmp.Or(l.Files, model.MaxFiles) }

// surplus returns how many of the oldest files are left out to keep the rest within the bounds. Files that an earlier
// request had are left out in groups of half of each bound: leaving out one file for each new one would change the
// beginning of every request, and a prompt cache needs an unchanged beginning. Of the files since the last answer, as
// few as possible are left out.
func surplus(steps []step.Step, most int) (skip int) {
	var files []*step.File
	var size int64 // of those that are not left out
	sent := 0      // how many a request had before
	for _, s := range steps {
		if s.Role == step.RoleAssistant {
			sent = len(files)
		}
		for _, p := range s.Parts {
			if p.File != nil {
				files = append(files, p.File)
				size += p.File.Size
			}
		}
		for skip < len(files)-1 && (len(files)-skip > most || size > model.MaxFileBytes) { // alone, the last one is within the bounds
			n, bytes := group(files[skip:max(sent, skip+1)], most/2)
			skip, size = skip+n, size-bytes
		}
	}
	return skip
}

// group returns how many of the first files are a group, which is at least one, and their size.
func group(files []*step.File, most int) (n int, bytes int64) {
	for _, f := range files {
		if n > 0 && (n >= most || bytes+f.Size > model.MaxFileBytes/2) {
			break
		}
		n, bytes = n+1, bytes+f.Size
	}
	return n, bytes
}

// read reads a file, and reports whether it exists.
func (c *Conversation) read(files model.Files, f *step.File) bool {
	if _, ok := c.data[f.Digest]; ok {
		return true
	}
	if files == nil {
		return false
	}
	data, err := files.ReadFile(f.Digest)
	if err != nil {
		return false
	}
	c.data[f.Digest] = base64.StdEncoding.EncodeToString(data)
	return true
}

// A FileLog records which images and documents a provider accepted and refused, by session. The zero value is empty.
type FileLog struct {
	Limits FileLimits

	mu       sync.Mutex
	sessions map[string]*fileSession
}

type fileSession struct {
	accepted int64          // the last step with files that were accepted
	refused  map[int64]bool // steps whose files were refused
}

// session returns the record of a session. The caller holds the lock.
func (l *FileLog) session(key string) *fileSession {
	if l.sessions == nil || len(l.sessions) >= maxSessions {
		l.sessions = map[string]*fileSession{}
	}
	s := l.sessions[key]
	if s == nil {
		s = &fileSession{refused: map[int64]bool{}}
		l.sessions[key] = s
	}
	return s
}

// Conversation returns the session of a request as it is sent.
func (l *FileLog) Conversation(req *model.Request) *Conversation {
	if !slices.ContainsFunc(req.Steps, step.Step.HasFiles) {
		return &Conversation{Steps: req.Steps}
	}
	l.mu.Lock()
	refused := maps.Clone(l.session(req.CacheKey).refused)
	l.mu.Unlock()
	return conversationOf(req, refused, l.Limits)
}

// Send sends a request. If the provider refuses it, and it has files that this provider has not
// accepted before, it is sent once more without these: each server has other words for a model
// that takes no images, and for an image that it cannot read. If that is accepted, the files of
// these steps are not sent again. report is called before the further request; wanted is false if it
// returns false.
func (l *FileLog) Send(x *Call, req *model.Request, send func() (bool, error), report func(model.Delta) bool) (wanted bool, err error) {
	if text := l.warning(req); text != "" && !report(model.Delta{Warning: text}) {
		return false, nil
	}
	wanted, err = send()
	if !wanted || !slices.ContainsFunc(req.Steps, step.Step.HasFiles) {
		return wanted, err
	}
	if err == nil {
		l.accept(req)
		return true, nil
	}
	if x.client.NoRepair || !x.mayBeAboutFiles(err) {
		return true, err
	}
	refused := l.refuse(req)
	if len(refused) == 0 {
		return true, err
	}
	repair := &model.Repair{Kind: model.RepairFiles, Change: "the new images and documents are not sent"}
	if !report(model.Delta{Repair: repair, Because: err.Error()}) {
		return false, nil
	}
	wanted, err = send()
	if err != nil {
		l.restore(req, refused) // they were not the cause
		return wanted, err
	}
	if n := filesOfUser(req, refused); wanted && n > 0 {
		wanted = report(model.Delta{Warning: fmt.Sprintf("%d files that a user shows are not sent: the provider refused them, and the agent reads a line for each. Use a model that takes them", n)})
	}
	return wanted, nil
}

// filesOfUser counts the files that a user shows in steps of a request.
func filesOfUser(req *model.Request, steps []int64) (n int) {
	for _, s := range req.Steps {
		if s.Role == step.RoleUser && slices.Contains(steps, s.Seq) {
			n += s.Files()
		}
	}
	return n
}

// warning counts the files in the prompt or a message of a user that are not sent; empty: none. Files that this
// provider got before are not counted: they are left out to make room for later ones.
func (l *FileLog) warning(req *model.Request) string {
	if !slices.ContainsFunc(req.Steps, step.Step.HasFiles) {
		return ""
	}
	l.mu.Lock()
	known := l.session(req.CacheKey)
	accepted, refused := known.accepted, maps.Clone(known.refused)
	l.mu.Unlock()
	shown, left := 0, 0
	for i, s := range l.Limits.apply(req.Steps, refused) {
		if s.Role == step.RoleUser && s.Seq > accepted && !refused[s.Seq] {
			n := req.Steps[i].Files()
			shown, left = shown+n, left+n-s.Files()
		}
	}
	if left == 0 {
		return ""
	}
	side := ""
	if l.Limits.Side > 0 {
		side = fmt.Sprintf(", %d pixels in width and height", l.Limits.Side)
	}
	return fmt.Sprintf("%d of %d files that a user shows are not sent, and the agent reads a line for each: this provider takes at most %d files, %d MiB in all%s. Show fewer or smaller files",
		left, shown, l.Limits.files(), model.MaxFileBytes>>20, side)
}

// accept records that the provider accepted the files of a request.
func (l *FileLog) accept(req *model.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.session(req.CacheKey)
	for _, s := range req.Steps {
		if s.HasFiles() && !known.refused[s.Seq] {
			known.accepted = max(known.accepted, s.Seq)
		}
	}
}

// refuse records that the provider refused the files that it has not accepted, and returns their
// steps.
func (l *FileLog) refuse(req *model.Request) (steps []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.session(req.CacheKey)
	for _, s := range req.Steps {
		if s.HasFiles() && s.Seq > known.accepted && !known.refused[s.Seq] {
			known.refused[s.Seq] = true
			steps = append(steps, s.Seq)
		}
	}
	return steps
}

// restore reverts refuse.
func (l *FileLog) restore(req *model.Request, steps []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, seq := range steps {
		delete(l.session(req.CacheKey).refused, seq)
	}
}

// mayBeAboutFiles reports whether files can be the cause of an error: the provider refused the
// request, and not for the account or by a page of a proxy, or the body is too large for a server on
// the way.
func (c *Call) mayBeAboutFiles(err error) bool {
	if _, policy := errors.AsType[*model.RefusedError](err); policy || c.status == http.StatusRequestEntityTooLarge {
		return true
	}
	bad, ok := errors.AsType[*model.BadRequestError](err)
	return ok && bad.Status >= http.StatusBadRequest && bad.Cause != model.CausePayment && bad.Cause != model.CausePage
}
