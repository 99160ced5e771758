package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// formTool asks for an answer of a form: one that begins with a brace.
func formTool(form string) tool.Tool {
	t := newTool("form", tool.Resumable, func(ctx context.Context, c tool.Call) (tool.Result, error) {
		a, err := c.Session.Ask(ctx, tool.Question{Call: c.ID, Text: "Which?", Schema: json.RawMessage(form), Fits: func(answer string) error {
			if !strings.HasPrefix(answer, "{") {
				return errors.New("`branch` is missing")
			}
			return nil
		}})
		return tool.Result{Text: a.Text}, err
	})
	t.Timeout = tool.Unbounded
	return t
}

// An answer that does not fit is refused with what is wrong with it, and the
// question stays open. What is said to the agent is an answer only where it fits.
func TestAnAnswerThatDoesNotFitIsRefused(t *testing.T) {
	const fits = `{"branch":"main"}`
	misfits := fmt.Sprintf(approval.RefusedInvalid, "`branch` is missing")
	cases := map[string]struct {
		said []task.Decision
		want []task.Decided
		told string
	}{
		"words, then what fits": {
			[]task.Decision{answers("words", "s2c1", "main"), answers("none", "s2c1", ""), answers("fits", "s2c1", fits)},
			[]task.Decided{{Name: "words", Request: "s2c1", Refused: misfits}, {Name: "none", Request: "s2c1", Refused: misfits}, {Name: "fits", Request: "s2c1"}},
			fits,
		},
		"without a request": {
			[]task.Decision{answers("words", "", "main"), answers("fits", "", fits)},
			[]task.Decided{{Name: "words", Refused: misfits}, {Name: "fits", Request: "s2c1"}},
			fits,
		},
		"too large": {
			[]task.Decision{answers("large", "s2c1", "{"+strings.Repeat("x", toolcall.MaxResult)), answers("fits", "s2c1", fits)},
			[]task.Decided{
				{Name: "large", Request: "s2c1", Refused: fmt.Sprintf(approval.RefusedInvalid, fmt.Sprintf("it has %d bytes; at most %d are read", toolcall.MaxResult+1, toolcall.MaxResult))},
				{Name: "fits", Request: "s2c1"},
			},
			fits,
		},
		"a message that fits": {[]task.Decision{message("m", fits)}, []task.Decided{{Name: "m", Request: "s2c1"}}, fits},
		"a message that does not waits": {
			[]task.Decision{message("m", "hello"), answers("fits", "s2c1", fits)},
			[]task.Decided{{Name: "fits", Request: "s2c1"}, {Name: "m"}},
			fits,
		},
		"no secret in it": {
			[]task.Decision{answers("a", "s2c1", `{"branch":"`+canary+`"}`)},
			[]task.Decided{{Name: "a", Request: "s2c1"}},
			`{"branch":"‹secret:s/k›"}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newSignals()
				s := newTestRun(enginetest.Toolbox{formTool(`{"type":"object"}`)}, calls("form {}"), says("ok"), says("ok"))
				s.withApprovers(c)
				s.Redact = redacting()
				end := s.running(t.Context())
				time.Sleep(time.Minute)
				for _, d := range tc.said {
					c.say(d)
					synctest.Wait()
				}
				out := end()
				if got := s.steps(t)[2]; got.Text() != tc.told || got.Role != step.RoleTool {
					t.Errorf("the model reads %q, want %q", got.Text(), tc.told)
				}
				if diff := cmp.Diff(tc.want, out.Progress.Decided, typeless); diff != "" {
					t.Errorf("decided -want +got:\n%s", diff)
				}
			})
		})
	}
}

// The form is shown whole and as it is, or not at all.
func TestWhatFormAnAnswerHasIsShown(t *testing.T) {
	cases := map[string]struct{ form, want string }{
		"a form":                  {`{"type": "object"}`, `{"type":"object"}`},
		"none":                    {"", ""},
		"one with a secret":       {`{"title":"` + canary + `"}`, `{"title":"‹secret:s/k›"}`},
		"one that cannot be seen": {"{\"title\":\"a\u202eb\"}", `{"title":"a\u202eb"}`},
		"one that is too large":   {`{"title":"` + strings.Repeat("x", task.MaxSchema) + `"}`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newSignals()
				s := newTestRun(enginetest.Toolbox{formTool(tc.form)}, calls("form {}"), says("ok"))
				s.withApprovers(c)
				s.Redact = redacting()
				end := s.running(t.Context())
				synctest.Wait()
				if p := s.reporter.last().Pending; len(p) != 1 || p[0].Schema != tc.want {
					t.Errorf("pending %+v, want the form %s", p, tc.want)
				}
				c.say(answers("a", "s2c1", "{}"))
				end()
			})
		})
	}
}
