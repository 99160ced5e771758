package run

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A storyPlayer plays a story.
type storyPlayer struct {
	strings.Builder
	*cluster
	beats []beat
	agent *v1alpha1.Agent
	t     *testing.T
}

// play lets a story happen and tells it, line by line, until nothing is left to
// do.
func play(t *testing.T, s story) string {
	t.Helper()
	agent, run := gen.Agent(), gen.Run()
	if s.agent != nil {
		s.agent(agent)
	}
	if s.run != nil {
		s.run(run)
	}
	p := &storyPlayer{cluster: newCluster(t, run, agent), beats: s.beats, agent: agent, t: t}
	if s.alone {
		p.setAgent(t, nil)
	}
	fmt.Fprintf(p, "# %s\n", s.title)
	for range 200 {
		p.happen()
		wake, moved := p.move()
		if p.gone || !moved && wake == 0 && len(p.beats) == 0 {
			return p.String()
		}
		if !moved {
			p.pass(wake)
		}
	}
	t.Fatalf("the story does not end:\n%s", p)
	return ""
}

// happen lets everything happen that is due.
func (p *storyPlayer) happen() {
	for len(p.beats) > 0 && !gen.Noon.Add(p.beats[0].at).After(p.now) {
		b := p.beats[0]
		p.writeLine("* %s", b.what)
		if b.do != nil {
			b.do(p.cluster)
		} else {
			p.setAgent(p.t, p.agent)
		}
		p.beats = p.beats[1:]
	}
}

// move lets the controller take one step; moved says whether it changed
// anything, so that its own write wakes it again.
func (p *storyPlayer) move() (wake time.Duration, moved bool) {
	if p.away {
		return 0, false
	}
	before := p.run.Status.DeepCopy()
	plan := p.step()
	did := deed(plan)
	if did == "" && cmp.Equal(*before, p.run.Status) {
		return plan.wake, false
	}
	p.writeLine("%-22s %s %s", did, runstatus.OutcomeOf(p.run.Status).Status, sentence(reasonOf(p.run), messageOf(p.run)))
	return plan.wake, true
}

// pass lets time pass until the controller wakes or something happens.
func (p *storyPlayer) pass(wake time.Duration) {
	next := p.now.Add(wake)
	if len(p.beats) > 0 && (wake == 0 || next.After(gen.Noon.Add(p.beats[0].at))) {
		next = gen.Noon.Add(p.beats[0].at)
	}
	p.now = next
}

func (p *storyPlayer) writeLine(format string, args ...any) {
	fmt.Fprintf(p, "%s %s\n", clock(p.now.Sub(gen.Noon)), strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

func clock(d time.Duration) string {
	return fmt.Sprintf("%02d:%02d:%02d", int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60)
}

// deed is what a plan does, in a word.
func deed(p plan) string {
	var out []string
	if step := stepOf(p); step != "" {
		out = append(out, step)
	}
	for _, c := range p.setStates {
		out = append(out, fmt.Sprintf("has %s %s", c.Child.Name, c.To))
	}
	for _, to := range p.restore {
		out = append(out, "restores the owner of "+to.pod.Name)
	}
	if stepOf(p) != "" && p.create != nil {
		for _, pod := range p.remove {
			out = append(out, "deletes "+pod.Name)
		}
	}
	return strings.Join(out, ", ")
}

func stepOf(p plan) string {
	switch {
	case p.child != nil:
		return "makes " + p.child.Name
	case p.nextAttempt != nil:
		return fmt.Sprintf("claims %d", p.nextAttempt.Number)
	case p.create != nil:
		if told := runnerpod.SignalsIn(p.create); len(told.Children) > 0 {
			return "creates " + p.create.Name + " knowing " + signalText(told)
		}
		return "creates " + p.create.Name
	case p.recordPod != nil:
		return "adopts " + p.recordPod.Name
	case p.signal != nil:
		return "tells " + p.signal.Name + " " + signalText(p.signals)
	case len(p.remove) > 0:
		return "deletes " + strings.Join(names(p.remove), " ")
	case p.deleteVolume != nil:
		return "deletes the volume"
	case p.deleteRun:
		return "deletes the Run"
	}
	return ""
}

// signalText is what signals say to a runner, in a word.
func signalText(s task.Signals) string {
	if s.Stop {
		return "to stop"
	}
	if s.Pause && len(s.Decisions) == 0 {
		return "to hold"
	}
	if len(s.Decisions)+len(s.Children) == 0 {
		return "no more"
	}
	var out []string
	for _, c := range s.Children {
		out = append(out, c.Request+": "+sentence(c.Run, string(c.Reason), c.Message))
	}
	for _, d := range s.Decisions {
		grant := ""
		if d.Steps > 0 {
			grant = fmt.Sprintf("%d more steps", d.Steps)
		}
		out = append(out, strings.Join(strings.Fields(d.Name+": "+d.Value+grant), " "))
	}
	return strings.Join(out, ", ")
}

func names(pods []corev1.Pod) []string {
	var out []string
	for i := range pods {
		out = append(out, pods[i].Name)
	}
	return out
}
