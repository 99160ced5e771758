package router_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/router"
	"github.com/deckhand-dev/deckhand/runner/internal/model/source"
	"github.com/deckhand-dev/deckhand/runner/model"
)

// A Model whose provider named a time is not asked before it, while another may answer.
func TestAModelIsNotAskedBeforeTheTimeThatItsProviderNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := does(fails(limited), says("a", 1)), does(fails(busy), fails(busy), says("b", 1))
		r := router.New(targets(a, b), nil)
		began := time.Now()
		for range 2 {
			_, _, err := ask(t, r)
			from, ok := errors.AsType[*source.Error](err)
			if !ok || from.Model != "b" || !from.Until.Equal(began.Add(time.Hour)) || model.RetryAfter(err) != 0 {
				t.Fatalf("got %#v", err)
			}
			time.Sleep(time.Minute)
		}
		if name, _, _ := r.Next(); name != "b" {
			t.Errorf("the next request goes to %s", name)
		}
		if _, answer, err := ask(t, r); err != nil || answer.Model != "b" {
			t.Errorf("answered by %q: %v", answer.Model, err)
		}
		if len(a.asked) != 1 || len(b.asked) != 3 {
			t.Errorf("asked %d and %d times", len(a.asked), len(b.asked))
		}
		time.Sleep(time.Hour)
		if _, answer, err := ask(t, r); err != nil || answer.Model != "a" {
			t.Errorf("answered by %q: %v", answer.Model, err)
		}
	})
}

// What a caller is told if no Model answers: for which a wait is worth it, and until when.
func TestWhichErrorOfSeveralModelsIsReturned(t *testing.T) {
	later := &model.UnavailableError{Status: 503, RetryAfter: 2 * time.Hour}
	gone := &model.NoCredentialError{}
	cases := map[string]struct {
		errs  []error
		model string
		until time.Duration // 0: no provider named a time
	}{
		"of one that may answer at any time":          {[]error{busy, limited}, "a", time.Hour},
		"of the last of them":                         {[]error{busy, cut, limited}, "b", time.Hour},
		"of the one that is back first":               {[]error{later, limited, later}, "b", time.Hour},
		"of one that promised, not of a secret":       {[]error{later, gone}, "a", 2 * time.Hour},
		"of one that is away, not of a secret":        {[]error{busy, gone}, "a", 0},
		"of one that is away, not of a wrong key":     {[]error{busy, &model.UnauthorizedError{Status: 401, Message: "no"}}, "a", 0},
		"of one that is away, not of a wrong request": {[]error{busy, &model.BadRequestError{Status: 404, Message: "no"}, limited}, "a", time.Hour},
		"not of a session that is too long for it":    {[]error{busy, &model.ContextTooLongError{}}, "b", 0},
		"of a wrong key if no other is away":          {[]error{gone, &model.UnauthorizedError{Status: 401}}, "b", 0},
		"of the last if no wait is worth it":          {[]error{gone, &model.RateLimitedError{Final: true}}, "b", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var models []*scripted
				for _, err := range tc.errs {
					models = append(models, does(fails(err)))
				}
				want := time.Time{}
				if tc.until > 0 {
					want = time.Now().Add(tc.until)
				}
				_, _, err := ask(t, router.New(targets(models...), nil))
				from, ok := errors.AsType[*source.Error](err)
				if !ok || from.Model != tc.model {
					t.Fatalf("got %v", err)
				}
				if diff := cmp.Diff(want, from.Until); diff != "" {
					t.Errorf("until -want +got:\n%s", diff)
				}
			})
		})
	}
}

// If each provider named a time, a request before it is sent all the same: a user may have
// raised a limit.
func TestAllModelsAreAskedIfEachProviderNamedATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := does(fails(limited)), does(fails(limited), says("b", 1))
		r := router.New(targets(a, b), nil)
		if _, _, err := ask(t, r); model.RetryAfter(err) != time.Hour {
			t.Errorf("got %v", err)
		}
		if _, answer, err := ask(t, r); err != nil || answer.Model != "b" || len(a.asked) != 2 {
			t.Errorf("answered by %q: %v", answer.Model, err)
		}
	})
}
