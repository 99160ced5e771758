package retry_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/retry"
	"github.com/deckhand-dev/deckhand/runner/internal/model/source"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// A try is what the model does when it is asked once.
type try struct {
	deltas []model.Delta
	err    error
}

// scripted is a Model that makes these tries, one after the other.
type scripted struct{ tries []try }

func (s *scripted) Stream(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	next := s.tries[0]
	s.tries = s.tries[1:]
	return func(yield func(model.Delta, error) bool) {
		for _, d := range next.deltas {
			if !yield(d, nil) {
				return
			}
		}
		if next.err != nil {
			yield(model.Delta{}, next.err)
		}
	}
}

var (
	busy = &model.UnavailableError{Status: 503}
	down = &model.UnavailableError{Status: 500}
	cut  = &model.IncompleteError{}
	fine = try{deltas: []model.Delta{{Text: "Hi"}, used(10), {Finish: step.FinishStop}}}
)

func used(input int64) model.Delta {
	return model.Delta{Usage: &step.Usage{InputTokens: input, CostMicroUSD: input, Priced: true}}
}

// unclear is an answer with a finish reason that does not say that it is whole.
func unclear(reason string) try {
	return try{deltas: []model.Delta{{Text: "Hi"}, {Finish: step.FinishOther, UnclearReason: reason, Usage: used(10).Usage}}}
}

func late(field string) error {
	return &model.IncompleteError{Cause: &model.TimeoutError{Field: field, After: time.Minute}}
}

func limited(after time.Duration) try { return try{err: &model.RateLimitedError{RetryAfter: after}} }

// play asks once, with waits that are drawn as long as they may be, and tells
// what was waited for.
func play(t *testing.T, o retry.Options, tries ...try) (got []model.Delta, waits []time.Duration, err error) {
	t.Helper()
	o.Draw = func(limit time.Duration) time.Duration { return limit }
	o.Sleep = func(_ context.Context, d time.Duration) error {
		waits = append(waits, d)
		return nil
	}
	s := &scripted{tries: tries}
	for d, e := range retry.New(s, o).Stream(t.Context(), &model.Request{}) {
		if e != nil {
			err = e
			continue
		}
		got = append(got, d)
	}
	if len(s.tries) > 0 {
		t.Errorf("%d tries were not made", len(s.tries))
	}
	return got, waits, err
}

func TestWhatIsTriedAgain(t *testing.T) {
	second := time.Second
	cases := map[string]struct {
		tries []try
		waits []time.Duration
		fails bool
	}{
		"nothing after a whole answer":                          {tries: []try{fine}},
		"a failure":                                             {tries: []try{{err: down}, fine}, waits: []time.Duration{second / 2}},
		"an incomplete answer":                                  {tries: []try{{err: cut}, fine}, waits: []time.Duration{second / 2}},
		"a rate limit, when the provider says":                  {tries: []try{limited(7 * second), fine}, waits: []time.Duration{7 * second}},
		"a failure, when the provider says":                     {tries: []try{{err: &model.UnavailableError{RetryAfter: 3 * second}}, fine}, waits: []time.Duration{3 * second}},
		"a rate limit of just a minute":                         {tries: []try{limited(60 * second), fine}, waits: []time.Duration{60 * second}},
		"not a rate limit of more":                              {tries: []try{limited(61 * second)}, fails: true},
		"not what the provider says is final":                   {tries: []try{{err: &model.UnavailableError{Final: true}}}, fails: true},
		"not a key that is gone, which is waited for elsewhere": {tries: []try{{err: &model.NoCredentialError{}}}, fails: true},
		"not a wrong key":                                       {tries: []try{{err: &model.UnauthorizedError{Status: 401}}}, fails: true},
		"not a bad request":                                     {tries: []try{{err: &model.BadRequestError{Status: 400}}}, fails: true},
		"not a request that is too long":                        {tries: []try{{err: &model.ContextTooLongError{}}}, fails: true},
		"a garbled answer":                                      {tries: []try{{err: &model.NotAModelError{}}, fine}, waits: []time.Duration{second / 2}},
		"a garbled answer, twice and no more":                   {tries: []try{{err: &model.NotAModelError{}}, {err: &model.NotAModelError{}}, {err: &model.NotAModelError{}}}, waits: []time.Duration{second / 2, second}, fails: true},
		"not an answer without end":                             {tries: []try{{err: &model.NotAModelError{Final: true}}}, fails: true},
		"a timeout":                                             {tries: []try{{err: late(model.TimeoutFirstByte)}, fine}, waits: []time.Duration{second / 2}},
		"not a second timeout":                                  {tries: []try{{err: late(model.TimeoutFirstByte)}, {err: late(model.TimeoutTotal)}}, waits: []time.Duration{second / 2}, fails: true},
		"not a second one after other failures":                 {tries: []try{{err: late(model.TimeoutBetweenBytes)}, {err: down}, {err: cut}, {err: late(model.TimeoutFirstByte)}}, waits: []time.Duration{second / 2, second, 2 * second}, fails: true},
		"a rate limit that names no time":                       {tries: []try{limited(0), limited(0), limited(0), limited(0), limited(0)}, waits: []time.Duration{2 * second, 4 * second, 8 * second, 16 * second}, fails: true},
		"a provider that is overloaded":                         {tries: []try{{err: &model.UnavailableError{Status: 529}}, {err: busy}, fine}, waits: []time.Duration{2 * second, 4 * second}},
		"not a refusal by policy":                               {tries: []try{{err: &model.RefusedError{}}}, fails: true},
		"not the end of the caller's context":                   {tries: []try{{err: context.Canceled}}, fails: true},
		"four tries more, with waits that double":               {tries: []try{{err: down}, {err: down}, {err: down}, {err: down}, {err: down}}, waits: []time.Duration{second / 2, second, 2 * second, 4 * second}, fails: true},
		"a failure, but not if asked for an hour":               {tries: []try{{err: &model.UnavailableError{Status: 503, RetryAfter: time.Hour}}}, fails: true},
		"not a rate limit that is final":                        {tries: []try{{err: &model.RateLimitedError{Final: true, RetryAfter: second}}}, fails: true},
		"what another decorator wrapped":                        {tries: []try{{err: &source.Error{Model: "m", Err: down}}, fine}, waits: []time.Duration{second / 2}},
		"an answer that was broken off":                         {tries: []try{{err: &model.BrokenOffError{Reason: "abort"}}, fine}, waits: []time.Duration{second / 2}},
		"an unclear finish reason":                              {tries: []try{unclear("tired"), fine}, waits: []time.Duration{second / 2}},
		"an unclear finish reason, once":                        {tries: []try{unclear("tired"), unclear("bored")}, waits: []time.Duration{second / 2}},
		"once, whatever comes between":                          {tries: []try{unclear("tired"), {err: cut}, unclear("tired")}, waits: []time.Duration{second / 2, second}},
		"not an unclear one as the last try":                    {tries: []try{{err: cut}, {err: cut}, {err: cut}, {err: cut}, unclear("tired")}, waits: []time.Duration{second / 2, second, 2 * second, 4 * second}},
		"not a refusal, which is a whole answer":                {tries: []try{{deltas: []model.Delta{{Finish: step.FinishRefusal}}}}},
		"not an answer that the output limit ends":              {tries: []try{{deltas: []model.Delta{{Finish: step.FinishLength}}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			last := tc.tries[len(tc.tries)-1].err
			_, waits, err := play(t, retry.Options{}, tc.tries...)
			if diff := cmp.Diff(tc.waits, waits); diff != "" {
				t.Errorf("waits: -want +got:\n%s", diff)
			}
			if tc.fails != (err != nil) || tc.fails && !errors.Is(err, last) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTheWaitIsDrawnBelowItsBound(t *testing.T) {
	var limits, waits []time.Duration
	m := retry.New(&scripted{tries: []try{{err: down}, {err: down}, fine}}, retry.Options{
		Draw: func(limit time.Duration) time.Duration {
			limits = append(limits, limit)
			return limit / 10
		},
		Sleep: func(_ context.Context, d time.Duration) error {
			waits = append(waits, d)
			return nil
		},
	})
	if _, err := model.Collect(m.Stream(t.Context(), nil), nil); err != nil {
		t.Fatal(err)
	}
	ms := time.Millisecond
	want := [][]time.Duration{{500 * ms, 1000 * ms}, {50 * ms, 100 * ms}}
	if diff := cmp.Diff(want, [][]time.Duration{limits, waits}); diff != "" {
		t.Errorf("limits and waits: -want +got:\n%s", diff)
	}
}

func TestARetryVoidsWhatWasStreamedButNotWhatItCost(t *testing.T) {
	got, _, err := play(t, retry.Options{},
		try{deltas: []model.Delta{{Text: "H"}, used(3)}, err: cut},
		try{err: busy}, // before a word: nothing to void, nothing spent
		try{deltas: []model.Delta{{Text: "Ho"}, used(4)}, err: cut},
		fine,
	)
	want := []model.Delta{
		{Text: "H"},
		used(3),
		{Reset: true, Usage: used(3).Usage, Because: cut.Error()},
		{Reset: true, Usage: used(3).Usage, Because: busy.Error() + " (after a wait of 4s)"}, // each try is told, so that it can be counted
		{Text: "Ho"},
		used(7),
		{Reset: true, Usage: used(7).Usage, Because: cut.Error() + " (after a wait of 2s)"},
		{Text: "Hi"},
		used(17),
		{Finish: step.FinishStop},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v, -want +got:\n%s", err, diff)
	}
}

func TestAnUnclearAnswerIsVoidOnceAndThenCounts(t *testing.T) {
	got, _, err := play(t, retry.Options{}, unclear("tired"), unclear("bored"))
	want := []model.Delta{
		{Text: "Hi"},
		{Reset: true, Usage: used(10).Usage, Because: `the finish reason "tired" does not say that the answer is whole`},
		{Text: "Hi"},
		{Finish: step.FinishOther, UnclearReason: "bored", Usage: used(20).Usage},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v, -want +got:\n%s", err, diff)
	}
}

func TestAnUnclearAnswerCountsWhereThereAreNoRetries(t *testing.T) {
	got, _, err := play(t, retry.Options{Retries: -1}, unclear("tired"))
	if len(got) != 2 || got[1].UnclearReason != "tired" || err != nil {
		t.Errorf("got %+v, error %v", got, err)
	}
}

func TestAFailureInTheEndStillCostsAllTries(t *testing.T) {
	s := &scripted{tries: []try{
		{deltas: []model.Delta{{Text: "H"}, used(3)}, err: cut},
		{deltas: []model.Delta{{Text: "H"}, used(4)}, err: cut},
		{err: busy},
	}}
	m := retry.New(s, retry.Options{Retries: 2, Sleep: func(context.Context, time.Duration) error { return nil }})
	r, err := model.Collect(m.Stream(t.Context(), nil), nil)
	if !errors.Is(err, busy) || r.Usage.InputTokens != 7 {
		t.Errorf("error %v, usage %+v", err, r.Usage)
	}
}

// always fails in the same way, and counts.
type always struct {
	err   error
	asked int
}

func (a *always) Stream(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	a.asked++
	return func(yield func(model.Delta, error) bool) { yield(model.Delta{}, a.err) }
}

// By the clock: nothing replaced but time itself.
func TestHowLongItTakesToGiveUp(t *testing.T) {
	cases := map[string]struct {
		err         error
		tries       int
		least, most time.Duration
	}{
		"a provider that is down":                            {down, 5, 0, 7500 * time.Millisecond},
		"a provider that is overloaded":                      {busy, 5, 15 * time.Second, 30 * time.Second},
		"a rate limit that names no time":                    {&model.RateLimitedError{}, 5, 15 * time.Second, 30 * time.Second},
		"a rate limit that names its time":                   {&model.RateLimitedError{RetryAfter: time.Minute}, 5, 4 * time.Minute, 4 * time.Minute},
		"a rate limit that would hold the agent for an hour": {&model.RateLimitedError{RetryAfter: time.Hour}, 1, 0, 0},
		"a credential that does not come":                    {&model.NoCredentialError{}, 1, 0, 0},
		"a request that is wrong":                            {&model.BadRequestError{}, 1, 0, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				m := &always{err: tc.err}
				_, err := model.Collect(retry.New(m, retry.Options{}).Stream(t.Context(), nil), nil)
				took := time.Since(began)
				if !errors.Is(err, tc.err) || m.asked != tc.tries || took < tc.least || took > tc.most {
					t.Errorf("gave up after %d tries and %s: %v", m.asked, took, err)
				}
			})
		})
	}
}

func TestTriesAreBounded(t *testing.T) {
	never := func(context.Context, time.Duration) error { return nil }
	for retries, want := range map[int]int{0: 5, -1: 1, 1: 2, 1 << 40: 101} {
		m := &always{err: busy}
		_, _ = model.Collect(retry.New(m, retry.Options{Retries: retries, Sleep: never}).Stream(t.Context(), nil), nil)
		if m.asked != want {
			t.Errorf("with %d retries it was asked %d times, want %d", retries, m.asked, want)
		}
	}
}

func TestAWaitIsCutShortByTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		m := &always{err: &model.RateLimitedError{RetryAfter: time.Minute}}
		_, err := model.Collect(retry.New(m, retry.Options{}).Stream(ctx, nil), nil)
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != 7*time.Second || m.asked != 1 {
			t.Errorf("after %s and %d tries: %v", took, m.asked, err)
		}
	})
}

func TestAWaitEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := model.Collect(retry.New(&scripted{tries: []try{{err: busy}}}, retry.Options{}).Stream(ctx, nil), nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestWhoStopsListeningIsNotAnsweredAgain(t *testing.T) {
	m := retry.New(&scripted{tries: []try{{deltas: []model.Delta{{Text: "H"}, {Text: "i"}}, err: cut}}}, retry.Options{})
	for range m.Stream(t.Context(), nil) {
		break // a second yield, or a second try, would panic
	}
}
