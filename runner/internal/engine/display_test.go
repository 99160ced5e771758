package engine

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// asks is a request of so many bytes: "a2000" an approval, "d4096" a delegation.
func asks(written string) *request {
	var size int
	kinds := map[byte]string{'a': task.PendingApproval, 'd': task.PendingDelegation, 'q': task.PendingQuestion}
	if _, err := fmt.Sscan(written[1:], &size); err != nil {
		panic(err)
	}
	return &request{Pending: task.Pending{ID: written, Kind: kinds[written[0]], Args: strings.Repeat("x", size)}}
}

// What is shown, as requests come ("a100") and go ("-a100").
func TestWhatIsShownOfWhatIsAsked(t *testing.T) {
	cases := map[string]struct {
		happens, want string
	}{
		"all that fits":                           {"a100 d100 q100", "a100 d100 q100"},
		"no more than there may be":               {"a1 a2 a3 a4 a5 a6 a7 a8 a9", "a1 a2 a3 a4 a5 a6 a7 a8"},
		"delegations leave room for people":       {"d1 d2 d3 d4 d5 d6 d7 d8", "d1 d2 d3 d4 d5 d6"},
		"a large delegation is shown whole":       {"d4096", "d4096"},
		"a second one waits":                      {"d4096 d1", "d4096"},
		"people are asked beside a large one":     {"d4096 d4096 a2000", "d4096 a2000"},
		"it is shown when the first is over":      {"d4096 d4000 a2000 -d4096", "d4000 a2000"},
		"people go before delegations":            {"a6000 d400 a500 -a6000", "d400 a500"},
		"even those asked later":                  {"a6000 d4000 a3000 -a6000", "a3000"},
		"what was shown stays":                    {"d1000 d4000 a3000 a2000 -d1000", "a3000 a2000"},
		"and gives way when it is over":           {"d1000 d4000 a3000 a2000 -d1000 -a3000", "d4000 a2000"},
		"a small one does not overtake":           {"a3000 a3200 a100", "a3000"},
		"nor does a small delegation":             {"d3000 d3001 d100", "d3000"},
		"as much as there may be":                 {"a3072 a3072", "a3072 a3072"},
		"people that take all let none past them": {"a3072 a3072 d1", "a3072 a3072"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var m room
			var got []task.Pending
			for what := range strings.FieldsSeq(tc.happens) {
				if id, gone := strings.CutPrefix(what, "-"); gone {
					m.close(m.find(id))
				} else {
					m.open = append(m.open, asks(what))
				}
				got = m.display()
			}
			var ids []string
			size := 0
			for _, p := range got {
				ids, size = append(ids, p.ID), size+p.Size()
			}
			if diff := cmp.Diff(tc.want, strings.Join(ids, " ")); diff != "" || len(got) > task.MaxPending || size > task.MaxAsked {
				t.Errorf("%d bytes; -want +got:\n%s", size, diff)
			}
		})
	}
}

// More may be wanted than is shown, each as large as it may be: all are made, one
// after the other, and people are asked meanwhile.
func TestManyChildRunsWaitTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written []string
		for i := range 10 {
			text := fmt.Sprintf(`{"n":%d,"prompt":"%s"}`, i, strings.Repeat("x", task.MaxDelegated-30))
			written = append(written, "child "+text)
		}
		written = append(written, `Bash {"n":1}`)
		n := newNursery()
		s := raising(n, calls(written...), says("ok"))
		s.Actor.Agent.ParallelTools, s.Actor.Policy, s.CanAsk = 20, asksBefore, true
		end := s.running(t.Context())
		for range 10 {
			time.Sleep(time.Second)
			p := s.desk.last()
			if len(p.Pending) != 2 || p.Pending[0].Kind != task.PendingDelegation || p.State != stateApproval {
				t.Fatalf("state %q, pending %v", p.State, p.Pending)
			}
			n.say(finished(p.Pending[0].ID, "well"))
		}
		time.Sleep(time.Second)
		n.fakeSignals.say(approval("d", requested("s2c11", "Bash", `{"n":1}`), ""))
		if out := end(); out.Reason != task.ReasonFinished || out.Progress.Usage.CacheWriteTokens != 10_000 {
			t.Errorf("ended %s having used %+v: %s", out.Reason, out.Progress.Usage, out.Message)
		}
		if got := len(s.doneWith("child")); got != 10 {
			t.Errorf("%d were made", got)
		}
	})
}

// Whoever waits for a child Run does not hide that people are waited for.
func TestThePeopleAreWaitedForFirst(t *testing.T) {
	for name, tc := range map[string]struct {
		waits []errand
		open  string
		want  string
	}{
		"child Runs alone":            {[]errand{forChild, forChild}, "d1 d2", stateChild},
		"an approval behind":          {[]errand{forChild, forApproval}, "d1 a2", stateApproval},
		"a question behind":           {[]errand{forChild, forAnswer}, "d1 q2", stateAnswer},
		"what people are asked first": {[]errand{forChild, forAnswer, forApproval}, "d1 q2 a3", stateAnswer},
		"a provider too":              {[]errand{forChild, forProvider}, "d1", stateLimited},
		"a pause":                     {[]errand{forChild, forPause}, "d1", statePaused},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(newStage(box{echo("Read", tool.ReadOnly)}).Config)
			defer r.die()
			for _, e := range tc.waits {
				r.crew.enter()
				r.crew.wait(e)
			}
			for what := range strings.FieldsSeq(tc.open) {
				r.room.open = append(r.room.open, asks(what))
			}
			if got := r.waitState(); got != tc.want {
				t.Errorf("state %q, want %q", got, tc.want)
			}
		})
	}
}
