package run

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/statuspatch"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A player is a runner with its journal on a volume, and the people whom it asks.
type player struct {
	*cluster
	r     *rand.Rand
	asked int             // requests so far
	open  []string        // asked and not decided, as the journal knows it
	shown map[string]bool // those that the current attempt has asked again
	acted []string        // Decisions, as the journal knows it
	lost  int             // pods, of which only so many may be
}

func newPlayer(t *testing.T, r *rand.Rand) *player {
	t.Helper()
	agent := gen.Agent(onVolume)
	return &player{cluster: newCluster(t, gen.Run(), agent), r: r, shown: map[string]bool{}}
}

// number is that of the attempt whose runner is alive; 0: none is.
func (p *player) number() int {
	a := p.run.Status.Attempt
	if a == nil || a.PodUID == "" || !runnerpod.IsAlive(p.pods[a.Pod]) || p.run.Status.CompletionTime != nil {
		return 0
	}
	return int(a.Number)
}

func callOf(request string) string {
	call, _, _ := strings.Cut(request, "-")
	return call
}

// reportPending reports what the current attempt has open.
func (p *player) reportPending(mods ...func(*v1alpha1.RunProgress)) {
	var pending []v1alpha1.PendingRequest
	for _, id := range p.open {
		if p.shown[id] {
			pending = append(pending, approval(callOf(id), 1000*hour))
		}
	}
	state := ""
	if len(pending) > 0 {
		state = v1alpha1.ReasonAwaitingApproval
	}
	reports(p.number(), append([]func(*v1alpha1.RunProgress){begun, awaits(state, pending...), func(s *v1alpha1.RunProgress) {
		s.Decided = nil
		for _, name := range p.acted {
			s.Decided = append(s.Decided, v1alpha1.DecidedRequest{Name: name, Request: strings.TrimPrefix(name, p.run.Name+"."), Digest: aDigest})
		}
	}}, mods...)...)(p.cluster)
}

// hear acts on what the runner was told, as far as it asks that.
func (p *player) hear(t *testing.T) {
	t.Helper()
	for _, d := range runnerpod.SignalsIn(p.pod(p.number())).Decisions {
		i := slices.Index(p.open, d.Request)
		switch {
		case slices.Contains(p.acted, d.Name):
		case i < 0:
			t.Fatalf("the runner is told %s, of %s, which it never asked", d.Name, d.Request)
		case p.shown[d.Request]:
			p.open = slices.Delete(p.open, i, i+1)
			p.acted = append(p.acted, d.Name)
		}
	}
	p.reportPending()
}

// leave has the runner leave to wait, or because the Run is paused.
func (p *player) leave() {
	n, reason := p.number(), task.ReasonWaiting
	if runnerpod.SignalsIn(p.pod(n)).Pause {
		reason = task.ReasonPaused
	} else if len(p.open) == 0 || slices.ContainsFunc(p.open, func(id string) bool { return !p.shown[id] }) {
		return // it leaves to wait when all that is open waits
	}
	p.reportPending(leaves(reason))
	exits(n, 75)(p.cluster)
	p.shown = map[string]bool{}
}

// befalls lets something happen to the runner.
func (p *player) befalls(t *testing.T) {
	t.Helper()
	n := p.number()
	if n == 0 {
		return
	}
	starts(n)(p.cluster)
	switch p.r.IntN(6) {
	case 0:
		p.asked++
		id := requestFor(fmt.Sprintf("s%dc1", p.asked))
		p.open, p.shown[id] = append(p.open, id), true
		p.reportPending()
	case 1: // it asks again what an attempt before it asked
		for _, id := range p.open {
			p.shown[id] = true
		}
		p.reportPending()
	case 2:
		p.reportPending()
	case 3:
		p.hear(t)
	case 4:
		p.leave()
	case 5:
		if p.lost++; p.lost < 8 {
			isEvicted(n)(p.cluster)
			p.shown = map[string]bool{}
		}
	}
}

// decide has a person decide what the Run shows.
func (p *player) decide() {
	progress := p.run.Status.Progress
	if progress == nil || p.run.Status.CompletionTime != nil {
		return
	}
	for _, q := range progress.Pending {
		if !slices.ContainsFunc(p.decided, func(d v1alpha1.Decision) bool { return d.Spec.Request == q.ID }) {
			approves(callOf(q.ID))(p.cluster)
			return
		}
	}
}

// settle does what the controller of Decisions does.
func (p *player) settle(t *testing.T) {
	t.Helper()
	for i := range p.decided {
		d := &p.decided[i]
		if decisions.IsFinal(d) {
			continue
		}
		v := decisions.Evaluate(p.run, d)
		if v.Applied == metav1.ConditionFalse {
			t.Fatalf("%s, good and made in time, is refused: %s", d.Name, v.Message)
		}
		d.Status.Conditions = statuspatch.MergeConditions(d.Status.Conditions, metav1.NewTime(p.now), 1, metav1.Condition{Type: v1alpha1.ConditionApplied, Status: v.Applied, Reason: "X", Message: v.Message})
	}
}

// What a person decides is neither lost nor refused, whatever befalls the pods of
// a Run on a volume and whenever it is paused; and it is not told to a runner that
// cannot know it.
func TestDecisionsAreNotLost(t *testing.T) {
	for seed := range gen.Seeds(100) {
		r := rand.New(rand.NewPCG(seed, 4))
		p := newPlayer(t, r)
		for range 150 {
			switch r.IntN(10) {
			case 0, 1:
				p.decide()
			case 2:
				wants([]v1alpha1.DesiredState{v1alpha1.DesiredPaused, v1alpha1.DesiredRunning}[r.IntN(2)])(p.cluster)
			case 3:
				p.settle(t)
			case 4, 5, 6:
				p.befalls(t)
			default:
				p.step()
			}
			p.now = p.now.Add(time.Duration(r.IntN(5)) * time.Second)
		}
		p.finish(t, seed)
	}
}

// finish lets everything go well, and looks what became of what was decided.
func (p *player) finish(t *testing.T, seed uint64) {
	t.Helper()
	if c := p.run.Status.CompletionTime; c != nil {
		t.Fatalf("seed %d: it ended: %s", seed, sentence(reasonOf(p.run), messageOf(p.run)))
	}
	wants(v1alpha1.DesiredRunning)(p.cluster)
	for range 60 {
		p.step()
		if n := p.number(); n > 0 {
			starts(n)(p.cluster)
			for _, id := range p.open {
				p.shown[id] = true
			}
			p.reportPending()
			p.step()
			p.hear(t)
		}
		p.settle(t)
		p.now = p.now.Add(10 * time.Second)
	}
	for _, d := range p.decided {
		if n := len(slices.DeleteFunc(slices.Clone(p.acted), func(name string) bool { return name != d.Name })); n != 1 || !decisions.IsFinal(&d) {
			t.Errorf("seed %d: %s was acted on %d times, and ended as %v", seed, d.Name, n, d.Status.Conditions)
		}
	}
}

// While nobody decides, a Run that waits without a pod makes none.
func TestAMessageDoesNotWakeARunForEver(t *testing.T) {
	p := newPlayer(t, rand.New(rand.NewPCG(1, 5)))
	p.step()
	p.step()
	starts(1)(p.cluster)
	p.asked, p.open, p.shown = 1, []string{"s1c1"}, map[string]bool{"s1c1": true}
	p.reportPending()
	p.leave()
	answers("", "Hurry up.")(p.cluster)
	for range 20 {
		p.step()
		p.now = p.now.Add(time.Minute)
	}
	if n := p.run.Status.Attempt.Number; n != 1 {
		t.Errorf("attempt %d is begun for a message to a Run that waits for an approval", n)
	}
}

// A Run whose Agent is missing has all of limits.pending once it may go on,
// however long it was paused.
func TestPendingDoesNotRunWhilePaused(t *testing.T) {
	c := newCluster(t, gen.Run(func(r *v1alpha1.Run) { r.Spec.DesiredState = v1alpha1.DesiredPaused }), nil)
	c.step()
	c.now = c.now.Add(10 * hour)
	wants(v1alpha1.DesiredRunning)(c)
	c.step()
	if got := reasonOf(c.run); got != v1alpha1.ReasonPending || c.run.Status.Internal.ResumedAt == nil {
		t.Fatalf("it goes on with %s, resumed at %v", got, c.run.Status.Internal.ResumedAt)
	}
	c.now = c.now.Add(time.Minute)
	if c.step(); reasonOf(c.run) != v1alpha1.ReasonPending {
		t.Errorf("a minute later: %s", sentence(reasonOf(c.run), messageOf(c.run)))
	}
	c.now = c.now.Add(c.observed().limits().pending)
	if c.step(); reasonOf(c.run) != v1alpha1.ReasonPendingTimeout {
		t.Errorf("after limits.pending: %s", sentence(reasonOf(c.run), messageOf(c.run)))
	}
}

// A pod that does not start is waited for as long as its Run is paused.
func TestAPodThatDoesNotStartWaitsWhilePaused(t *testing.T) {
	c := newCluster(t, gen.Run(), gen.Agent())
	c.begin()
	isUnschedulable(1)(c)
	c.step()
	wants(v1alpha1.DesiredPaused)(c)
	c.now = c.now.Add(10 * hour)
	c.step() // the pod gets the signal
	if c.step(); reasonOf(c.run) != v1alpha1.ReasonPaused {
		t.Fatalf("paused: %s", sentence(reasonOf(c.run), messageOf(c.run)))
	}
	wants(v1alpha1.DesiredRunning)(c)
	c.step()
	if c.step(); reasonOf(c.run) != v1alpha1.ReasonUnschedulable {
		t.Errorf("it goes on with %s", sentence(reasonOf(c.run), messageOf(c.run)))
	}
}

// Whoever acts on an approval that was refused acted on none.
func TestARefusedApprovalIsNoProof(t *testing.T) {
	c := newCluster(t, gen.Run(), gen.Agent(onVolume))
	c.begin()
	starts(1)(c)
	approves("s3c1")(c)
	reports(1, actsOn("s3c1"))(c)
	if c.step(); reasonOf(c.run) == v1alpha1.ReasonDecisionMismatch {
		t.Fatal("a good approval is no proof")
	}
	c.decided[0].Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionFalse}}
	if c.step(); reasonOf(c.run) != v1alpha1.ReasonDecisionMismatch {
		t.Errorf("%s", sentence(reasonOf(c.run), messageOf(c.run)))
	}
}
