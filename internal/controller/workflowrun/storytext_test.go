package workflowrun

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/internal/workflow"
)

// A beat is something that happens at a time.
type beat struct {
	at   time.Duration
	what string
	do   func(*cluster)
}

func at(d time.Duration, what string, do func(*cluster)) beat { return beat{d, what, do} }

type story struct {
	title  string
	run    func(*v1alpha1.Run)
	spec   string            // of the Workflow; empty: there is none
	nested map[string]string // the same of Workflows that it names
	beats  []beat
	// before is the story of the Run w, which the Run retries; nil: it retries none.
	before *story
}

// A storyPlayer plays a story. The controller takes a step when something
// that it watches wakes it, or at the time that it asked for, and never else.
type storyPlayer struct {
	strings.Builder
	*cluster
	beats []beat
	woken bool
	due   time.Time // zero: never
}

// play lets a story happen and tells it, line by line, until nothing is left to
// do.
func play(t *testing.T, s story) string {
	t.Helper()
	var nested []*v1alpha1.Workflow
	for name, text := range s.nested {
		nested = append(nested, written(t, name, text))
	}
	var v *workflow.Revision
	if s.spec != "" {
		v = whole(t, s.spec, nested...)
	}
	if s.run == nil {
		s.run = func(*v1alpha1.Run) {}
	}
	p := &storyPlayer{cluster: newCluster(v, s.run), beats: s.beats}
	if s.before != nil {
		p.before = playBefore(t, *s.before)
	}
	if v == nil {
		p.missing = `Workflow "release" not found in namespace team-a`
	}
	fmt.Fprintf(p, "# %s\n", s.title)
	p.woken = true // it is created
	for range 300 {
		p.happen()
		switch {
		case p.away && len(p.beats) > 0:
			p.now = gen.Noon.Add(p.beats[0].at)
		case p.woken || !p.due.IsZero() && !p.now.Before(p.due):
			p.move()
		case p.due.IsZero() && len(p.beats) == 0:
			return p.String()
		default:
			p.pass()
		}
		if p.gone {
			return p.String()
		}
	}
	t.Fatalf("the story does not end:\n%s", p)
	return ""
}

// happen lets everything happen that is due.
func (p *storyPlayer) happen() {
	for len(p.beats) > 0 && !gen.Noon.Add(p.beats[0].at).After(p.now) {
		p.writeLine("* %s", p.beats[0].what)
		before, away := p.glance(), p.away
		p.beats[0].do(p.cluster)
		p.woken = p.woken || p.stirs(before) || away && !p.away
		p.beats = p.beats[1:]
	}
}

// move lets the controller take one step, which may wake it again.
func (p *storyPlayer) move() {
	before, seen := p.run.Status.DeepCopy(), p.glance()
	plan := p.step()
	p.woken, p.due = p.stirs(seen), time.Time{}
	if plan.wake > 0 {
		p.due = p.now.Add(plan.wake)
	}
	did := deed(plan)
	if did == "" && cmp.Equal(*before, p.run.Status) {
		return
	}
	o := runstatus.OutcomeOf(p.run.Status)
	p.writeLine("%s", strings.TrimSpace(fmt.Sprintf("%s %s %s: %s", did, o.Status, o.Reason, o.Message)))
	for _, n := range p.run.Status.Nodes {
		if had := nodeStatus(before.Nodes, n.Name); had == nil && n.State != v1alpha1.NodeWaiting || had != nil && nodeLine(*had) != nodeLine(n) {
			p.writeLine("    %s", nodeLine(n))
		}
	}
	if r := p.observed().recordedEnd(); r != nil && r.Output != "" && before.CompletionTime == nil {
		p.writeLine("    output %s", r.Output)
	}
}

// nodeLine is a node, in a line.
func nodeLine(n v1alpha1.NodeStatus) string {
	text := n.Name + " " + string(n.State)
	if n.Reason != "" {
		text += " " + n.Reason
	}
	if c := n.Counts; c != nil {
		text += fmt.Sprintf(" (%d: %d began, %d succeeded, %d failed, %d skipped)", c.Total, c.Started, c.Succeeded, c.Failed, c.Skipped)
	}
	return text
}

// pass lets time pass until the controller wakes or something happens.
func (p *storyPlayer) pass() {
	next := p.due
	if len(p.beats) > 0 && (next.IsZero() || next.After(gen.Noon.Add(p.beats[0].at))) {
		next = gen.Noon.Add(p.beats[0].at)
	}
	p.now = next
}

func (p *storyPlayer) writeLine(format string, args ...any) {
	d := p.now.Sub(gen.Noon)
	fmt.Fprintf(p, "%02d:%02d:%02d %s\n", int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

// deed is what a plan does, in words.
func deed(p plan) string {
	var out []string
	for _, o := range p.setStates {
		out = append(out, fmt.Sprintf("tells %s to be %s;", o.Child.Name, o.To))
	}
	for _, c := range p.create {
		out = append(out, fmt.Sprintf("makes %s %s;", c.Run.Name, handed(c.Run)))
	}
	for _, d := range p.own {
		out = append(out, "owns "+d.Name+";")
	}
	switch {
	case p.storeRevision != nil:
		out = append(out, "keeps the version;")
	case p.deleteVolume != nil:
		out = append(out, "deletes "+p.deleteVolume.Name+";")
	case p.deleteRun:
		out = append(out, "deletes the Run;")
	}
	return strings.Join(out, " ")
}

// handed is what a child is given.
func handed(r *v1alpha1.Run) string {
	text := fmt.Sprintf("%q", r.Spec.Prompt)
	if r.Spec.Input != nil {
		text = string(r.Spec.Input.Raw)
	}
	if l := r.Spec.Limits; l != nil && l.Tokens != nil {
		text += fmt.Sprintf(" with %s tokens", *l.Tokens)
	}
	if from := r.Spec.ContinueFrom; from != nil && isReused(r) {
		text += " with the result of " + from.Run
	} else if from != nil {
		text += " to retry " + from.Run
	}
	return text
}

func TestStories(t *testing.T) {
	all := map[string]story{}
	for _, some := range []map[string]story{stories, refusedStories, peopleStories, retryStories} {
		maps.Copy(all, some)
	}
	for name, s := range all {
		t.Run(name, func(t *testing.T) {
			got := play(t, s)
			file := filepath.Join("testdata", "stories", name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("the story goes differently (-want +got):\n%s", diff)
			}
		})
	}
}
