package toolcall_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// The record of a result names the files that the model is shown, and has a line for each other
// one. Their bytes are not in it.
func TestFilesOfAResult(t *testing.T) {
	shown := tool.File{Name: "a/sk-secret\nx.png", Data: []byte("bytes of the picture")}
	many := tool.Result{Text: "many"}
	for i := range 22 {
		many.Files = append(many.Files, tool.File{Name: fmt.Sprint(i), Data: []byte("y")})
	}
	failed := tool.Fail("it broke")
	failed.Files = []tool.File{{Name: "big.png"}}
	cases := map[string]struct {
		result tool.Result
		text   string
		files  int
	}{
		"a file":           {tool.Result{Text: "seen", Files: []tool.File{shown}}, "seen", 1},
		"a file alone":     {tool.Result{Files: []tool.File{shown}}, "(no output)", 1},
		"a refused one":    {tool.Result{Text: "seen", Files: []tool.File{{Name: "big.png"}, shown}}, "seen\n[big.png is not shown: it is too large. Make it smaller]", 1},
		"one of a failure": {failed, "Error: it broke\n[big.png is not shown: it is too large. Make it smaller]", 0},
		"more than may be": {many, "many\n[2 more files are not shown: at most 20 are at once]", 20},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, []tool.Tool{doing(newTool("Read", tool.ReadOnly), func(context.Context, tool.Call) (tool.Result, error) {
				return tc.result, nil
			})}, `Read {}`)
			s.config.Redact = redact.New(redact.Secret{Name: "KEY", Key: "k", Value: []byte("sk-secret")})
			s.config.Attach = func(name string, data []byte) (step.Part, error) {
				if len(data) == 0 {
					return step.Part{}, errors.New("it is too large. Make it smaller")
				}
				return step.Part{Kind: step.PartImage, File: &step.File{Name: name, Size: int64(len(data))}}, nil
			}
			if err := s.execute(t.Context()); err != nil {
				t.Fatal(err)
			}
			steps := s.Store.Session("").Steps
			got := steps[len(steps)-1]
			files := countFiles(t, got)
			if got.Text() != tc.text || files != tc.files {
				t.Errorf("the step has %d files and the text %q, want %d and %q", files, got.Text(), tc.files, tc.text)
			}
			if raw := fmt.Sprintf("%+v", got); bytes.Contains([]byte(raw), shown.Data) {
				t.Error("the step has the bytes")
			}
		})
	}
}

// countFiles returns how many files a step has, whose names are one line without secrets.
func countFiles(t *testing.T, s step.Step) (files int) {
	t.Helper()
	for _, p := range s.Parts {
		if p.File == nil {
			continue
		}
		files++
		if strings.Contains(p.File.Name, "\n") || strings.Contains(p.File.Name, "sk-secret") {
			t.Errorf("its name is %q", p.File.Name)
		}
	}
	return files
}
