package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/deckhand-dev/deckhand/internal/digest"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// deepCall is the id of a call of the sixth agent below each other, in a long session.
var deepCall = strings.TrimSuffix(strings.Repeat("s12345c123.", 6), ".")

// A name is what Kubernetes accepts as the name of a Decision.
var name = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// Two requests for approval have the same id only if they are the same request about
// the same call. Each id is part of the name of a Kubernetes object, which a suffix for
// the next Decision fits behind.
func TestNoTwoRequestsForApprovalShareAnID(t *testing.T) {
	calls := []string{"s1c1", "s1c11", "s11c1", "s2c1", "s2c1.s1c1", "s2c1.s1c11", deepCall, strings.Replace(deepCall, "s1", "s2", 1)}
	args := []string{`{}`, `{"n":1}`, `{"n":1.0}`, `{"n":"1"}`, `{"a":"` + strings.Repeat("x", 3000) + `1"}`, `{"a":"` + strings.Repeat("x", 3000) + `2"}`}
	seen := map[string]string{}
	for _, call := range calls {
		for _, called := range []string{"Bash", "bash"} {
			for _, a := range args {
				for before := range 1001 {
					id := requestID(call, before, digest.Call(called, json.RawMessage(a)))
					what := fmt.Sprintf("%s %s %s %d", call, called, a, before)
					if other, taken := seen[id]; taken {
						t.Fatalf("%s and %s have the id %s", other, what, id)
					}
					seen[id] = what
				}
			}
		}
	}
	for id := range maps.Keys(seen) {
		if len(id) > maxRequestID || !name.MatchString(id) || len(id[strings.LastIndexByte(id, '-')+1:]) != 32 {
			t.Errorf("the id %s has %d bytes", id, len(id))
		}
	}
}

// Whatever calls there are: a decision that names the request of one is good for no
// other, and a decision that names no digest is good only under the whole id.
func TestADecisionIsGoodForItsOwnCallOnly(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var all []*request
	for n := range 300 {
		call := step.CallID([]string{"", "s4c1", deepCall}[random.IntN(3)], int64(random.IntN(3)), random.IntN(3))
		args := fmt.Sprintf(`{"n":%d,"s":"%x"}`, random.IntN(4), random.Uint64()>>random.IntN(64))
		sum := digest.Call([]string{"Bash", "Read"}[n%2], json.RawMessage(args))
		all = append(all, &request{Pending: task.Pending{ID: requestID(call, random.IntN(3), sum), Kind: task.PendingApproval, Digest: sum}})
	}
	for _, q := range all {
		for _, other := range all {
			d := approval("d", other.ID, "")
			if got, _ := q.fits(d); (got != nil) != (q.ID == other.ID) {
				t.Fatalf("an approval of %s is good for %s: %t", other.ID, q.ID, got != nil)
			}
			d.Digest = other.Digest
			if got, _ := q.fits(d); (got != nil) != (q.Digest == other.Digest) {
				t.Fatalf("an approval with the digest of %s is good for %s: %t", other.ID, q.ID, got != nil)
			}
		}
		for _, id := range []string{"", callOf(q.ID), q.ID[:len(q.ID)-1], q.ID + "0", callOf(q.ID) + "-" + strings.Repeat("0", 32)} {
			if got, _ := q.fits(approval("d", id, "")); got != nil {
				t.Errorf("an approval of %q is good for %s", id, q.ID)
			}
		}
	}
}

// The digits are of what is called, not of what is shown, which is cut.
func TestTheIDIsOfTheCompleteArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("x", 2*task.MaxArgs)
		one, two := `{"a":"`+long+`1`+long+`"}`, `{"a":"`+long+`2`+long+`"}`
		c := newSignals()
		s := governedStage(c, calls("Bash "+one, "Bash "+two), says("ok"))
		end := s.running(t.Context())
		synctest.Wait()
		p := s.desk.last().Pending
		if len(p) != 2 || p[0].Args != p[1].Args || p[0].ID != requested("s2c1", "Bash", one) || p[1].ID != requested("s2c2", "Bash", two) {
			t.Errorf("pending %+v", p)
		}
		c.say(approval("d", requested("s2c1", "Bash", two), ""))
		c.say(approval("e", requested("s2c2", "Bash", two), ""))
		end()
		if made := s.doneWith("Bash"); len(made) != 1 || made[0] != two {
			t.Errorf("%d calls were made", len(made))
		}
	})
}

// What the model wrote of a secret is not what is called: the tool is called without
// it, and the digits are of that.
func TestTheIDIsOfWhatIsCalledWhereAModelWritesASecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSignals()
		s := governedStage(c, calls(`Bash {"key":"`+canary+`"}`), says("ok"))
		s.Redact = redact.New(redact.Secret{Name: "s", Key: "k", Value: []byte(canary)})
		end := s.running(t.Context())
		synctest.Wait()
		c.say(approval("d", s.desk.last().Pending[0].ID, ""))
		end()
		made := s.doneWith("Bash")
		if len(made) != 1 || s.desk.last().Decided[0].Digest != digest.Call("Bash", json.RawMessage(made[0])) {
			t.Errorf("made %v for %+v", made, s.desk.last().Decided)
		}
	})
}

// A call that many agents stand above has an id that is too long for a name. Its hash
// takes its place, in every attempt, and a decision that comes before the next attempt
// asks again is kept for it.
func TestADecisionOnACallWithALongIDIsKeptForTheNextAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := governedStage(newSignals(), calls(`Bash {"n":1}`), says("ok"))
		id := requestID(deepCall, 0, digest.Call("Bash", json.RawMessage(`{"n":1}`)))
		if strings.HasPrefix(id, "s") || len(id) > maxRequestID {
			t.Fatalf("the id is %s", id)
		}
		session := deepCall[:strings.LastIndexByte(deepCall, '.')]
		r := newRun(s.Config)
		defer r.die()
		if err := r.load(); err != nil {
			t.Fatal(err)
		}
		for _, rec := range []journal.Record{
			{Session: session, Kind: journal.KindStep, Step: &step.Step{Seq: 1, Role: step.RoleAssistant, Finish: step.FinishCalls, Calls: []step.Call{{ID: deepCall, Name: "Bash", Args: json.RawMessage(`{"n":1}`)}}}},
			{Session: session, Kind: journal.KindAsk, Request: &journal.Request{ID: id, CallID: deepCall}},
		} {
			if err := r.state.Record(func() journal.Record { return rec }, func() {}); err != nil {
				t.Fatal(err)
			}
		}
		for request, want := range map[string]bool{id: true, strings.Replace(id, "h", "h0", 1): false, "s9c9": false} {
			if got := r.due(request); got != want {
				t.Errorf("%s may yet be asked: %t", request, got)
			}
		}
	})
}

// A request that an older runner asked has an id without digits: it keeps the id, and
// an approval of it names the digest.
func TestAnIDWithoutDigitsNeedsTheDigest(t *testing.T) {
	sum := digest.Call("Bash", json.RawMessage(`{}`))
	q := &request{Pending: task.Pending{ID: "s2c1", Kind: task.PendingApproval, Digest: sum}}
	if got, refused := q.fits(approval("d", "s2c1", "")); got != nil || refused != refusedDigest {
		t.Errorf("an approval without digest is good for it, or refused as %q", refused)
	}
	if got, _ := q.fits(approval("d", "s2c1", sum)); got == nil {
		t.Error("an approval with its digest is not good for it")
	}
}

// Requests that are asked at once are shown in the order of their calls, whatever
// their ids end in.
func TestRequestsAreShownInTheOrderOfTheirCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := governedStage(newSignals(), calls(`Bash {}`, `ask {"q":"a"}`, `Bash {"n":1}`, `ask {"q":"b"}`), says("ok"))
		s.Actor.Agent.ParallelTools = 4
		s.Actor.Tools = box{echo("Bash", tool.ReadOnly), askTool()}
		end := s.running(t.Context())
		synctest.Wait()
		var got []string
		for _, p := range s.desk.last().Pending {
			got = append(got, callOf(p.ID))
		}
		if !slices.Equal(got, []string{"s2c1", "s2c2", "s2c3", "s2c4"}) {
			t.Errorf("shown are %v", got)
		}
		end()
	})
}
