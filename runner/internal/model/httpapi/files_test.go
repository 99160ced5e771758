package httpapi_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// bytesOf has bytes of each file, apart from those that are gone.
type bytesOf struct{ gone string }

func (b bytesOf) ReadFile(digest string) ([]byte, error) {
	if digest == b.gone {
		return nil, errors.New("no such file")
	}
	return []byte(digest), nil
}

// leftOut is what the agent reads of a file that made room for later ones.
const leftOut = "read it again if you need it"

// images returns a request with a step for each file, whose digest is its number from 0.
func images(files ...step.File) *model.Request {
	req := &model.Request{Files: bytesOf{gone: "gone"}}
	for i, f := range files {
		if f.Digest == "" {
			f.Digest = strconv.Itoa(i)
		}
		f.MediaType, f.Name = "image/png", f.Digest+".png"
		req.Steps = append(req.Steps, step.Step{Seq: int64(i + 1), Role: step.RoleUser, Parts: []step.Part{{Kind: step.PartImage, File: &f}}})
	}
	return req
}

// answered returns a request with an answer of the model after each file.
func answered(files ...step.File) *model.Request {
	req := images(files...)
	for i := len(req.Steps); i > 1; i-- {
		answer := step.Step{Role: step.RoleAssistant, Parts: []step.Part{{Kind: step.PartText, Text: "I see it; " + leftOut}}}
		req.Steps = slices.Insert(req.Steps, i-1, answer)
	}
	return req
}

// of returns so many files of a size.
func of(n int, size int64) []step.File {
	files := make([]step.File, n)
	for i := range files {
		files[i] = step.File{Size: size, Width: 100, Height: 100}
	}
	return files
}

// A request has no more than its provider takes: a line with what to do stands for each other file, and
// the last file is always sent.
func TestConversationKeepsTheLimitsOfARequest(t *testing.T) {
	const mib = 1 << 20
	azure, claude := httpapi.FileLimits{Files: 10}, httpapi.FileLimits{Side: 8000}
	wide := []step.File{{Size: 1, Width: 8001, Height: 10}, {Size: 1, Width: 10, Height: 8001}, {Size: 1, Width: 8000, Height: 5000}}
	const tooLarge = "takes at most 8000 pixels in width and height. Scale it down"
	cases := map[string]struct {
		limits   httpapi.FileLimits
		files    []step.File
		answered bool   // the model answered after each
		sent     int    // the last ones
		line     string // in place of the others
	}{
		"as many as a request has":                 {files: of(20, 1), sent: 20},
		"one more at once":                         {files: of(21, 1), sent: 20, line: leftOut},
		"one more, one by one":                     {files: of(21, 1), answered: true, sent: 11, line: leftOut},
		"many more at once":                        {files: of(95, 1), sent: 20, line: leftOut},
		"many more, one by one":                    {files: of(95, 1), answered: true, sent: 15, line: leftOut},
		"as many as a provider with a lower count": {limits: azure, files: of(10, 1), sent: 10},
		"one more than a lower count":              {limits: azure, files: of(11, 1), sent: 10, line: leftOut},
		"half more than a lower count":             {limits: azure, files: of(15, 1), sent: 10, line: leftOut},
		"one more than a lower count, one by one":  {limits: azure, files: of(11, 1), answered: true, sent: 6, line: leftOut},
		"as many bytes as a request has":           {files: of(4, 3*mib), sent: 4},
		"more bytes at once":                       {files: of(5, 3*mib), sent: 4, line: leftOut},
		"more bytes, one by one":                   {files: of(5, 3*mib), answered: true, sent: 3, line: leftOut},
		"sides above those of a provider":          {limits: claude, files: wide, sent: 1, line: tooLarge},
		"sides of a provider without a limit":      {files: wide, sent: 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log := httpapi.FileLog{Limits: tc.limits}
			req, sent := images(tc.files...), 0
			if tc.answered {
				req = answered(tc.files...)
			}
			for i, s := range log.Conversation(req).Steps {
				if s.HasFiles() {
					sent++
				} else if tc.line == "" || !strings.Contains(s.Text(), tc.line) {
					t.Errorf("the line of file %d is %q", i, s.Text())
				}
			}
			if sent != tc.sent {
				t.Errorf("%d files are sent, want %d", sent, tc.sent)
			}
		})
	}
}

// Users read of files that they show and that are never sent, but not of files that made room for
// later ones.
func TestSendWarnsOfFilesThatAUserShows(t *testing.T) {
	const azure = "1 of 11 files that a user shows are not sent, and the agent reads a line for each: " +
		"this provider takes at most 10 files, 12 MiB in all. Show fewer or smaller files"
	cases := map[string]struct {
		limits httpapi.FileLimits
		files  []step.File
		sent   int       // how many were in a request before
		role   step.Role // of the steps
		want   string
	}{
		"as many as are sent":          {files: of(20, 1), role: step.RoleUser},
		"more than the provider takes": {limits: httpapi.FileLimits{Files: 10}, files: of(11, 1), role: step.RoleUser, want: azure},
		"a side above that of the provider": {
			limits: httpapi.FileLimits{Side: 8000}, files: []step.File{{Size: 1, Width: 9000, Height: 1}}, role: step.RoleUser,
			want: "1 of 1 files that a user shows are not sent, and the agent reads a line for each: this provider takes at most 20 files, 12 MiB in all, 8000 pixels in width and height. Show fewer or smaller files",
		},
		"files that were sent before": {limits: httpapi.FileLimits{Files: 10}, files: of(11, 1), sent: 10, role: step.RoleUser},
		"files of tools":              {limits: httpapi.FileLimits{Files: 10}, files: of(11, 1), role: step.RoleTool},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log := httpapi.FileLog{Limits: tc.limits}
			send := func(files []step.File) (warning string) {
				req := images(files...)
				for i := range req.Steps {
					req.Steps[i].Role = tc.role
				}
				_, err := log.Send(nil, req, func() (bool, error) { return true, nil }, func(d model.Delta) bool {
					warning += d.Warning
					return true
				})
				if err != nil {
					t.Fatal(err)
				}
				return warning
			}
			if tc.sent > 0 {
				send(tc.files[:tc.sent])
			}
			if got := send(tc.files); got != tc.want {
				t.Errorf("the warning is %q, want %q", got, tc.want)
			}
			if got := send(tc.files); got != "" {
				t.Errorf("the second request warns, too: %q", got)
			}
		})
	}
}

// The files that are sent stay the same while a session grows, so that prompt caches hold.
func TestConversationLeavesOutFilesInGroups(t *testing.T) {
	var log httpapi.FileLog
	changes, before := 0, -1
	for n := 1; n <= 100; n++ {
		first := -1
		for i, s := range log.Conversation(answered(of(n, 1)...)).Steps {
			if s.HasFiles() && first < 0 {
				first = i
			}
		}
		if first != before {
			changes++
		}
		before = first
	}
	if changes > 9 {
		t.Errorf("the first file that is sent changed %d times in 100 requests", changes)
	}
}

func TestConversationHasALineForAFileThatIsGone(t *testing.T) {
	var log httpapi.FileLog
	c := log.Conversation(images(step.File{Digest: "gone", Width: 8, Height: 6}, step.File{Width: 8, Height: 6}))
	if got, want := c.Steps[0].Text(), "[image gone.png, 8x6, image/png: not shown, because its bytes are no longer there]"; got != want {
		t.Errorf("the line is %q, want %q", got, want)
	}
	if f := c.Steps[1].Parts[0].File; c.DataURL(f) != "data:image/png;base64,MQ==" {
		t.Errorf("the other file is %q", c.DataURL(f))
	}
}
