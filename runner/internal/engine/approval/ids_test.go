package approval

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/meter"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// deepCall is the id of a call of the sixth agent below each other, in a long session.
var deepCall = strings.TrimSuffix(strings.Repeat("s12345c123.", 6), ".")

// approve is a Decision that approves.
func approve(name, request, sum string) task.Decision {
	return task.Decision{Name: name, By: "ann", Request: request, Digest: sum, Type: task.DecisionApprove}
}

// A name is what Kubernetes accepts as the name of a Decision.
var name = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// Two requests for approval have the same id only if they are the same request about
// the same call. Each id is part of the name of a Kubernetes object, which a suffix for
// the next Decision fits behind.
func TestNoTwoRequestsForApprovalShareAnID(t *testing.T) {
	if testing.Short() {
		t.Skip("has one goroutine, so it runs without the race detector")
	}
	calls := []string{"s1c1", "s1c11", "s11c1", "s2c1", "s2c1.s1c1", "s2c1.s1c11", deepCall, strings.Replace(deepCall, "s1", "s2", 1)}
	args := []string{`{}`, `{"n":1}`, `{"n":1.0}`, `{"n":"1"}`, `{"a":"` + strings.Repeat("x", 3000) + `1"}`, `{"a":"` + strings.Repeat("x", 3000) + `2"}`}
	seen := map[string]string{}
	for _, call := range calls {
		for _, called := range []string{"Bash", "bash"} {
			for _, a := range args {
				for before := range 1001 {
					id := RequestID(call, before, digest.Call(called, json.RawMessage(a)))
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
		if len(id) > MaxRequestID || !name.MatchString(id) || len(id[strings.LastIndexByte(id, '-')+1:]) != 32 {
			t.Errorf("the id %s has %d bytes", id, len(id))
		}
	}
}

// Whatever calls there are: a decision that names the request of one is good for no
// other, and a decision that names no digest is good only under the whole id.
func TestADecisionIsGoodForItsOwnCallOnly(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var all []*Request
	for n := range 300 {
		call := step.CallID([]string{"", "s4c1", deepCall}[random.IntN(3)], int64(random.IntN(3)), random.IntN(3))
		args := fmt.Sprintf(`{"n":%d,"s":"%x"}`, random.IntN(4), random.Uint64()>>random.IntN(64))
		sum := digest.Call([]string{"Bash", "Read"}[n%2], json.RawMessage(args))
		all = append(all, &Request{Pending: task.Pending{ID: RequestID(call, random.IntN(3), sum), Kind: task.PendingApproval, Digest: sum}})
	}
	for _, q := range all {
		for _, other := range all {
			d := approve("d", other.ID, "")
			if got, _ := q.check(d); (got != nil) != (q.ID == other.ID) {
				t.Fatalf("an approval of %s is good for %s: %t", other.ID, q.ID, got != nil)
			}
			d.Digest = other.Digest
			if got, _ := q.check(d); (got != nil) != (q.Digest == other.Digest) {
				t.Fatalf("an approval with the digest of %s is good for %s: %t", other.ID, q.ID, got != nil)
			}
		}
		for _, id := range []string{"", CallOf(q.ID), q.ID[:len(q.ID)-1], q.ID + "0", CallOf(q.ID) + "-" + strings.Repeat("0", 32)} {
			if got, _ := q.check(approve("d", id, "")); got != nil {
				t.Errorf("an approval of %q is good for %s", id, q.ID)
			}
		}
	}
}

// A call that many agents stand above has an id that is too long for a name. Its hash
// takes its place, in every attempt, and a decision that comes before the next attempt
// asks again is kept for it.
func TestADecisionOnACallWithALongIDIsKeptForTheNextAttempt(t *testing.T) {
	id := RequestID(deepCall, 0, digest.Call("Bash", json.RawMessage(`{"n":1}`)))
	if strings.HasPrefix(id, "s") || len(id) > MaxRequestID {
		t.Fatalf("the id is %s", id)
	}
	session := deepCall[:strings.LastIndexByte(deepCall, '.')]
	store := state.NewStore(&journal.Memory{}, "a")
	for _, rec := range []journal.Record{
		{Session: session, Kind: journal.KindStep, Step: &step.Step{Seq: 1, Role: step.RoleAssistant, Finish: step.FinishCalls, Calls: []step.Call{{ID: deepCall, Name: "Bash", Args: json.RawMessage(`{"n":1}`)}}}},
		{Session: session, Kind: journal.KindAsk, Request: &journal.Request{ID: id, CallID: deepCall}},
	} {
		if err := store.Record(func() journal.Record { return rec }, func() {}); err != nil {
			t.Fatal(err)
		}
	}
	r := New(Config{State: store, Reached: func() *meter.Limit { return nil }})
	for request, want := range map[string]bool{id: true, strings.Replace(id, "h", "h0", 1): false, "s9c9": false} {
		if got := r.mayBeAsked(request); got != want {
			t.Errorf("%s may yet be asked: %t", request, got)
		}
	}
}

// A request that an older runner asked has an id without digits: it keeps the id, and
// an approval of it names the digest.
func TestAnIDWithoutDigitsNeedsTheDigest(t *testing.T) {
	sum := digest.Call("Bash", json.RawMessage(`{}`))
	q := &Request{Pending: task.Pending{ID: "s2c1", Kind: task.PendingApproval, Digest: sum}}
	if got, refused := q.check(approve("d", "s2c1", "")); got != nil || refused != RefusedDigest {
		t.Errorf("an approval without digest is good for it, or refused as %q", refused)
	}
	if got, _ := q.check(approve("d", "s2c1", sum)); got == nil {
		t.Error("an approval with its digest is not good for it")
	}
}
