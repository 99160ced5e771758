package router_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/retry"
	"github.com/deckhand-dev/deckhand/runner/internal/model/router"
	"github.com/deckhand-dev/deckhand/runner/internal/model/source"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

func cost(input int64) model.Delta {
	return model.Delta{Usage: &step.Usage{InputTokens: input, CostMicroUSD: input, Priced: true}}
}

var (
	busy    = &model.UnavailableError{Status: 503}
	limited = &model.RateLimitedError{RetryAfter: time.Hour}
	cut     = &model.IncompleteError{}
	hello   = &model.Request{Steps: []step.Step{{Role: step.RoleUser, Parts: []step.Part{{Kind: step.PartText, Text: "Hello?"}}}}}
)

// targets are named a, b and c.
func targets(models ...*scripted) []router.Target {
	var list []router.Target
	for i, m := range models {
		name := string(rune('a' + i))
		list = append(list, router.Target{Name: name, Model: m, Credential: "the key of " + name})
	}
	return list
}

// ask is one answer and all that was streamed.
func ask(t *testing.T, m model.Model) ([]model.Delta, model.Response, error) {
	t.Helper()
	var seen []model.Delta
	r, err := model.Collect(m.Stream(t.Context(), hello), func(d model.Delta) { seen = append(seen, d) })
	return seen, r, err
}

func TestWhoIsAskedAfterAFailure(t *testing.T) {
	cases := map[string]struct {
		err  error
		next bool
	}{
		"a failure that retries did not mend":           {busy, true},
		"an overload":                                   {&model.UnavailableError{Status: 529}, true},
		"a failure that the provider calls final":       {&model.UnavailableError{Status: 500, Final: true}, true},
		"a rate limit longer than anybody waits":        {limited, true},
		"an answer that broke off":                      {cut, true},
		"a credential that is not there":                {&model.NoCredentialError{}, true},
		"a wrong key is the Model's own affair":         {&model.UnauthorizedError{Status: 401}, false},
		"a wrong request is wrong everywhere":           {&model.BadRequestError{Status: 400}, false},
		"a session that is too long is to be compacted": {&model.ContextTooLongError{}, false},
		"the wrong endpoint is to be mended":            {&model.NotAModelError{}, false},
		"the end of the caller's context is no failure": {context.Canceled, false},
		"nor is it inside of a broken answer":           {&model.IncompleteError{Cause: context.Canceled}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, b := does(fails(tc.err)), does(says("Hi", 1))
			_, r, err := ask(t, router.New(targets(a, b), nil))
			if got := len(b.asked) == 1; got != tc.next || len(a.asked) != 1 {
				t.Fatalf("the next was asked: %t, want %t", got, tc.next)
			}
			if tc.next {
				if err != nil || r.Model != "b" {
					t.Errorf("answered by %q, error %v", r.Model, err)
				}
				return
			}
			from, ok := errors.AsType[*source.Error](err)
			if !ok || from.Model != "a" || from.Credential != "the key of a" || !errors.Is(err, tc.err) {
				t.Errorf("got %#v", err)
			}
		})
	}
}

func TestARefusalIsAnAnswer(t *testing.T) {
	a, b := does(try{deltas: []model.Delta{{Text: "No."}, {Finish: step.FinishRefusal}}}), does(says("Hi", 1))
	_, r, err := ask(t, router.New(targets(a, b), nil))
	if err != nil || r.Finish != step.FinishRefusal || r.Model != "a" || len(b.asked) != 0 {
		t.Errorf("%+v, error %v, the other asked %d times", r, err, len(b.asked))
	}
}

func TestWhatIsStreamed(t *testing.T) {
	again := func(input int64, because string) model.Delta {
		d := model.Delta{Reset: true, Because: because}
		if input > 0 {
			d.Usage = cost(input).Usage
		}
		return d
	}
	finish := model.Delta{Finish: step.FinishStop}
	cases := map[string]struct {
		models []*scripted
		want   []model.Delta
	}{
		"one Model says who it is": {
			[]*scripted{does(says("Hi", 3))},
			[]model.Delta{{Model: "a"}, {Text: "Hi"}, cost(3), finish},
		},
		"what a Model streamed before it broke off is void, and paid for once": {
			[]*scripted{does(breaks(3)), does(breaks(4)), does(says("Hi", 10))},
			[]model.Delta{
				{Model: "a"},
				{Text: "We"},
				cost(3),
				again(3, "Model a: "+cut.Error()+"; asking Model b instead"),
				{Model: "b"},
				{Text: "We"},
				cost(7),
				again(7, "Model b: "+cut.Error()+"; asking Model c instead"),
				{Model: "c"},
				{Text: "Hi"},
				cost(17), finish,
			},
		},
		"a Model that said nothing is left with a word about it": {
			[]*scripted{does(fails(busy)), does(says("Hi", 10))},
			[]model.Delta{
				{Model: "a"},
				again(0, "Model a: "+busy.Error()+"; asking Model b instead"),
				{Model: "b"},
				{Text: "Hi"},
				cost(10), finish,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, _, err := ask(t, router.New(targets(tc.models...), nil))
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("error %v, -want +got:\n%s", err, diff)
			}
		})
	}
}

func TestWhenAllFailTheLastErrorAndTheWholeCostAreReturned(t *testing.T) {
	a, b := does(breaks(3)), does(breaks(4))
	r := router.New(targets(a, b), nil)
	_, got, err := ask(t, r)
	from, ok := errors.AsType[*source.Error](err)
	if !ok || from.Model != "b" || !model.Transient(err) || got.Usage.InputTokens != 7 || got.Model != "b" {
		t.Errorf("got %+v and %#v", got, err)
	}
	if name, _, _ := r.Next(); name != "a" {
		t.Errorf("the next request goes to %s", name)
	}
	if incomplete, ok := errors.AsType[*model.IncompleteError](err); !ok || incomplete.Partial.Usage.InputTokens != 7 {
		t.Errorf("the cut answer is not in its error: %+v", incomplete)
	}
}

// A cut answer is paid, though nobody after it said a word.
func TestWhatACutAnswerCostOutlivesModelsThatAreAway(t *testing.T) {
	a, b := does(breaks(3)), does(fails(busy), fails(busy))
	list := targets(a, b)
	list[1].Model = retry.New(b, retry.Options{Retries: 1, Sleep: func(context.Context, time.Duration) error { return nil }})
	deltas, got, err := ask(t, router.New(list, nil))
	if err == nil || len(b.asked) != 2 || got.Usage.InputTokens != 3 {
		t.Errorf("asked %d times, usage %+v, error %v", len(b.asked), got.Usage, err)
	}
	for i, d := range deltas {
		if d.Reset && (d.Usage == nil || d.Usage.InputTokens != 3) {
			t.Errorf("delta %d tells %+v", i, d.Usage)
		}
	}
}

// The retries of a Model are its own: only when they are spent, the next one is
// asked, and their costs are all in the sum.
func TestRetriesComeBeforeTheNextModel(t *testing.T) {
	a, b := does(breaks(1), breaks(2), breaks(4)), does(breaks(8), says("Hi", 16))
	list := targets(a, b)
	for i := range list {
		list[i].Model = retry.New(list[i].Model, retry.Options{Retries: 2, Sleep: func(context.Context, time.Duration) error { return nil }})
	}
	deltas, r, err := ask(t, router.New(list, nil))
	if err != nil || len(a.asked) != 3 || len(b.asked) != 2 || r.Usage.InputTokens != 31 || !r.Usage.Priced {
		t.Errorf("asked %d and %d times, usage %+v, error %v", len(a.asked), len(b.asked), r.Usage, err)
	}
	resets := 0
	for _, d := range deltas {
		if d.Reset {
			resets++
		}
	}
	if resets != 4 || r.Model != "b" || r.Parts[0].Text != "Hi" {
		t.Errorf("%d resets for 5 tries, answer %+v", resets, r)
	}
}

func TestARateLimitThatIsTooLongToWaitForGoesToTheNextAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		a, b := does(fails(limited)), does(says("Hi", 1))
		list := targets(a, b)
		list[0].Model = retry.New(a, retry.Options{})
		_, r, err := ask(t, router.New(list, nil))
		if waited := time.Since(began); err != nil || r.Model != "b" || waited != 0 {
			t.Errorf("answered by %s after %s, error %v", r.Model, waited, err)
		}
	})
}

// A fallback is stayed with, so that a session does not flap between caches.
func TestAFallbackIsStayedWithForAWhile(t *testing.T) {
	now := time.Unix(0, 0)
	a, b := does(fails(busy), says("back", 1)), does(says("Hi", 1))
	list := targets(a, b)
	list[0].Window, list[0].MaxOutput = 200_000, 64_000
	list[1].Window, list[1].MaxOutput = 100_000, 8_000
	r := router.New(list, func() time.Time { return now })
	type next struct {
		Name              string
		Window, MaxOutput int64
	}
	want := []struct {
		after    time.Duration
		next     next
		answered string
	}{
		{0, next{"a", 200_000, 64_000}, "b"},
		{time.Minute, next{"b", 100_000, 8_000}, "b"},
		{4*time.Minute - 1, next{"b", 100_000, 8_000}, "b"},
		{1, next{"a", 200_000, 64_000}, "a"},
		{time.Minute, next{"a", 200_000, 64_000}, "a"},
	}
	for i, w := range want {
		now = now.Add(w.after)
		var got next
		got.Name, got.Window, got.MaxOutput = r.Next()
		_, resp, err := ask(t, r)
		if diff := cmp.Diff(w.next, got); diff != "" || resp.Model != w.answered || err != nil {
			t.Errorf("request %d: answered by %s, error %v, next -want +got:\n%s", i, resp.Model, err, diff)
		}
	}
	if len(a.asked) != 3 || len(b.asked) != 3 {
		t.Errorf("asked %d and %d times", len(a.asked), len(b.asked))
	}
}

func TestAFallbackThatFailsTooIsNoReasonNotToTryTheFirst(t *testing.T) {
	a, b := does(fails(busy), says("back", 1)), does(says("Hi", 1), fails(busy))
	r := router.New(targets(a, b), nil)
	var who []string
	for range 3 {
		_, resp, err := ask(t, r)
		if err != nil {
			t.Fatal(err)
		}
		who = append(who, resp.Model)
	}
	if diff := cmp.Diff([]string{"b", "a", "a"}, who); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestARequestThatDoesNotFitTheFallbackIsToBeCompactedFirst(t *testing.T) {
	a, b := does(breaks(3)), does(says("Hi", 1))
	list := targets(a, b)
	list[1].Window, list[1].MaxOutput = 1000, 200
	r := router.New(list, nil)
	big := *hello
	big.System = strings.Repeat("word", 800)

	resp, err := model.Collect(r.Stream(t.Context(), &big), nil)
	tooLong, ok := errors.AsType[*model.ContextTooLongError](err)
	from, sourceError := errors.AsType[*source.Error](err)
	if !ok || tooLong.Window != 1000 || !sourceError || from.Model != "b" || len(b.asked) != 0 {
		t.Fatalf("got %v after asking b %d times", err, len(b.asked))
	}
	if !strings.Contains(err.Error(), "Model a: "+cut.Error()) || resp.Usage.InputTokens != 3 {
		t.Errorf("got %v, usage %+v", err, resp.Usage)
	}
	if name, window, _ := r.Next(); name != "b" || window != 1000 {
		t.Errorf("the next request goes to %s with a window of %d", name, window)
	}
	if _, resp, err = ask(t, r); err != nil || resp.Model != "b" || len(a.asked) != 1 {
		t.Errorf("the compacted request: answered by %q, error %v", resp.Model, err)
	}
}

// Only who takes over is measured: the loop knows better, from what was
// reported, how large a request is to the Model that it goes to anyway.
func TestTheModelThatIsAskedFirstIsNotMeasured(t *testing.T) {
	list := targets(does(says("Hi", 1)))
	list[0].Window = 1
	if _, _, err := ask(t, router.New(list, nil)); err != nil {
		t.Error(err)
	}
}

func TestWhoStopsListeningIsNotAnswered(t *testing.T) {
	for stop := 1; stop <= 5; stop++ {
		a, b := does(breaks(1)), does(says("Hi", 1))
		n := 0
		for range router.New(targets(a, b), nil).Stream(t.Context(), hello) {
			if n++; n == stop {
				break // a further yield would panic
			}
		}
		if want := map[bool]int{true: 1}[stop > 4]; len(b.asked) > want {
			t.Errorf("after %d deltas b was asked %d times", stop, len(b.asked))
		}
	}
}

func TestNoModelIsAnError(t *testing.T) {
	r := router.New(nil, nil)
	if _, _, err := ask(t, r); err == nil {
		t.Error("nobody answered")
	}
	if name, window, _ := r.Next(); name != "" || window != 0 {
		t.Error("nobody is next")
	}
}

// Several sessions ask through one router, and none is lost.
func TestSessionsShareARouter(t *testing.T) {
	stubborn := model.Model(always(fails(busy)))
	kind := model.Model(always(says("Hi", 1)))
	r := router.New([]router.Target{{Name: "a", Model: stubborn}, {Name: "b", Model: kind}}, nil)
	errs := make(chan error)
	for range 8 {
		go func() {
			var err error
			for range 50 {
				r.Next()
				_, e := model.Collect(r.Stream(context.WithoutCancel(t.Context()), hello), nil)
				err = errors.Join(err, e)
			}
			errs <- err
		}()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// always is a Model that does the same each time, for anybody.
type always try

func (a always) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return does(try(a)).Stream(ctx, req)
}

// BenchmarkOneTarget is what the router costs where there is nothing to route.
func BenchmarkOneTarget(b *testing.B) {
	m := always(try{deltas: slices.Repeat([]model.Delta{{Text: "word"}}, 100)})
	for name, m := range map[string]model.Model{
		"direct": m,
		"routed": router.New([]router.Target{{Name: "a", Model: m}}, nil),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for range m.Stream(b.Context(), hello) {
				}
			}
		})
	}
}
