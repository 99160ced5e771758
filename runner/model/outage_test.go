package model_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/model/source"
	"github.com/deckhand-dev/deckhand/runner/model"
)

func TestOutage(t *testing.T) {
	cases := map[string]struct {
		err  error
		want bool
	}{
		"a refused connection":                        {&model.UnavailableError{Message: "connection refused"}, true},
		"a host that has no address":                  {&model.UnavailableError{Message: "lookup gpt: no such host"}, true},
		"a server that loads its model":               {&model.UnavailableError{Status: 503, Message: "Loading model"}, true},
		"a proxy without a server":                    {&model.UnavailableError{Status: 502, Message: "Bad Gateway"}, true},
		"an overload":                                 {&model.UnavailableError{Status: model.StatusOverloaded}, true},
		"a timeout of the server":                     {&model.UnavailableError{Status: 408}, true},
		"a rate limit":                                {&model.RateLimitedError{}, true},
		"a credential that is gone for a while":       {&model.NoCredentialError{}, true},
		"a stream that is cut":                        {&model.IncompleteError{Cause: errors.New("connection reset by peer")}, true},
		"an answer that the server broke off":         {&model.BrokenOffError{Reason: "abort"}, true},
		"not an answer that the server cannot use":    {&model.BrokenOffError{Reason: "malformed_function_call", Unusable: true}, false},
		"not a server that is silent for too long":    {&model.IncompleteError{Cause: &model.TimeoutError{Field: model.TimeoutFirstByte}}, false},
		"an outage of one Model of several":           {&source.Error{Model: "b", Err: &model.UnavailableError{Status: 503}}, true},
		"not an error that the provider calls final":  {&model.UnavailableError{Status: 500, Final: true}, false},
		"not a used-up quota":                         {&model.RateLimitedError{Final: true}, false},
		"not a call that the provider could not read": {&model.UnavailableError{Status: 400, Message: "tool_use_failed"}, false},
		"not a wrong request":                         {&model.BadRequestError{Status: 400}, false},
		"not a refused key":                           {&model.UnauthorizedError{Status: 401}, false},
		"not a web page":                              {&model.NotAModelError{}, false},
		"not the end of the caller":                   {&model.IncompleteError{Cause: context.Canceled}, false},
		"not an error of another kind":                {errors.New("boom"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := model.Outage(tc.err); got != tc.want {
				t.Errorf("Outage() = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	cases := map[string]struct {
		err  error
		want time.Duration
	}{
		"of a rate limit":           {&model.RateLimitedError{RetryAfter: time.Hour}, time.Hour},
		"of a server that is away":  {&source.Error{Err: &model.UnavailableError{Status: 503, RetryAfter: time.Minute}}, time.Minute},
		"not of an error without":   {&model.UnavailableError{Status: 503}, 0},
		"not of a final error":      {&model.RateLimitedError{RetryAfter: time.Hour, Final: true}, 0},
		"not of another kind of it": {&model.IncompleteError{}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := model.RetryAfter(tc.err); got != tc.want {
				t.Errorf("RetryAfter() = %s, want %s", got, tc.want)
			}
		})
	}
}
