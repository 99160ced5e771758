package cli

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// windowed is a session with a Run of three texts, at 12:00:01, 12:00:02 and 12:00:03.
func windowed(t *testing.T) *session {
	t.Helper()
	run := namedRun("fix", v1alpha1.ReasonFinished, finished)
	s := newSession(t, run, runnerPod(run, "1", corev1.PodSucceeded))
	s.openLog = (&fakeLogs{streams: map[string][]fakeStream{"fix-1": {{lines: "a warning at the start\n" + textEvent(1, 1, "one\n") + textEvent(1, 2, "two\n") + textEvent(1, 3, "three\n")}}}}).open
	s.Now = func() time.Time { return gen.Noon.Add(time.Minute) }
	return s
}

func TestLogsPrintAPartOfTheConversation(t *testing.T) {
	for args, want := range map[string]string{
		"--tail=2":             "  two\n  three\n",
		"--tail=1":             "  three\n",
		"--tail=0":             "",
		"--tail=1 -f":          "  three\n",
		"--since=58s":          "! What happened before 12:00:02 UTC is left out (--since)\n● two\n  three\n",
		"--since=57s --tail=1": "● three\n",
		"--since=1s":           "",
		"--since=58s --json":   textEvent(1, 2, "two\n") + textEvent(1, 3, "three\n"),
		"--json --tail=1":      textEvent(1, 3, "three\n"),
	} {
		s := windowed(t)
		if code := s.run(t, append([]string{"logs", "fix"}, strings.Fields(args)...)...); code != exit.OK || s.out.String() != want {
			t.Errorf("%s: exit code %d, printed %q, want %q: %s", args, code, s.out.String(), want, s.err.String())
		}
	}
	for _, args := range []string{"--tail=-2", "--since=soon", "--since=-5m"} {
		if code := windowed(t).run(t, append([]string{"logs", "fix"}, strings.Fields(args)...)...); code != exit.Usage {
			t.Errorf("%s: exit code %d", args, code)
		}
	}
}

func TestTailPassesWhatFollowsThePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := make(chanWriter, 8)
		w := (&logWindow{tail: 2}).writer(out, time.Second)
		for _, text := range []string{"one\ntw", "o\nthree\n", "fo"} {
			if _, err := w.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
			if printed := out.text(); printed != "" {
				t.Fatalf("printed %q before the past has ended", printed)
			}
		}
		time.Sleep(2 * time.Second) // of the fake clock
		synctest.Wait()
		if _, err := w.Write([]byte("ur\nfive\n")); err != nil {
			t.Fatal(err)
		}
		if got, want := out.text(), "three\nfour\nfive\n"; got != want {
			t.Errorf("printed %q, want %q", got, want)
		}
	})
}

// Without -f the end of the log decides: a pause is that of a slow API server.
func TestTailDoesNotEndThePastByAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := namedRun("fix", v1alpha1.ReasonFinished, finished)
		s := newSession(t, run, runnerPod(run, "1", corev1.PodFailed), runnerPod(run, "2", corev1.PodSucceeded))
		logs := &fakeLogs{streams: map[string][]fakeStream{"fix-1": {{lines: textEvent(1, 1, "one\n")}}, "fix-2": {{lines: textEvent(2, 2, "two\n")}}}}
		s.Interval = time.Second
		s.openLog = func(ctx context.Context, namespace, pod string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
			time.Sleep(time.Minute) // of the fake clock
			return logs.open(ctx, namespace, pod, o)
		}
		if code := s.run(t, "logs", "fix", "--tail=1"); code != exit.OK || s.out.String() != "● two\n" {
			t.Errorf("exit code %d, printed %q: %s", code, s.out.String(), s.err.String())
		}
	})
}

// A chanWriter holds what was written until it is read.
type chanWriter chan string

func (w chanWriter) Write(text []byte) (int, error) {
	w <- string(text)
	return len(text), nil
}

func (w chanWriter) text() string {
	var out strings.Builder
	for len(w) > 0 {
		out.WriteString(<-w)
	}
	return out.String()
}
