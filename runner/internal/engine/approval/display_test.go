package approval

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/meter"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// asks is a request of so many bytes: "a2000" an approval, "d4096" a delegation.
func asks(written string) *Request {
	var size int
	kinds := map[byte]string{'a': task.PendingApproval, 'd': task.PendingDelegation, 'q': task.PendingQuestion}
	if _, err := fmt.Sscan(written[1:], &size); err != nil {
		panic(err)
	}
	return &Request{Pending: task.Pending{ID: written, Kind: kinds[written[0]], Args: strings.Repeat("x", size)}}
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
			var o openRequests
			var got []task.Pending
			for what := range strings.FieldsSeq(tc.happens) {
				if id, gone := strings.CutPrefix(what, "-"); gone {
					o.close(o.find(id))
				} else {
					o.all = append(o.all, asks(what))
				}
				got = o.display()
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

// Whoever waits for a child Run does not hide that people are waited for.
func TestThePeopleAreWaitedForFirst(t *testing.T) {
	for name, tc := range map[string]struct {
		waits []WaitReason
		open  string
		want  string
	}{
		"child Runs alone":            {[]WaitReason{ForChild, ForChild}, "d1 d2", StateChild},
		"an approval behind":          {[]WaitReason{ForChild, ForApproval}, "d1 a2", StateApproval},
		"a question behind":           {[]WaitReason{ForChild, ForAnswer}, "d1 q2", StateAnswer},
		"what people are asked first": {[]WaitReason{ForChild, ForAnswer, ForApproval}, "d1 q2 a3", StateAnswer},
		"a model too":                 {[]WaitReason{ForChild, ForModel}, "d1", StateModel},
		"a pause":                     {[]WaitReason{ForChild, ForPause}, "d1", StatePaused},
	} {
		t.Run(name, func(t *testing.T) {
			activity := NewActivity(meter.NewClock(time.Now, time.Time{}), time.Now)
			r := New(Config{Signals: &signals.Latest{}, Activity: activity})
			for _, reason := range tc.waits {
				activity.Enter()
				activity.wait(reason)
			}
			for what := range strings.FieldsSeq(tc.open) {
				r.open.all = append(r.open.all, asks(what))
			}
			if got := r.State(); got != tc.want {
				t.Errorf("state %q, want %q", got, tc.want)
			}
		})
	}
}
