package turnroute

import (
	"fmt"
	"strings"
)

// A RouteError reports a route that does not compile or can never be used.
type RouteError struct {
	Route int // its place among the routes for turns, from 0
	// When reports that the error is in the condition and not in the order of routes.
	When bool
	Err  error
}

// Error implements error.
func (e *RouteError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the condition.
func (e *RouteError) Unwrap() error { return e.Err }

// Check returns the first error of routes for turns, given their conditions in order; nil:
// each compiles and can be used. An empty condition always holds. name names a route by its
// place.
func Check(conditions []string, name func(route int) string) *RouteError {
	always := -1
	earlier := map[string]int{}
	for i, when := range conditions {
		text := strings.Join(strings.Fields(when), " ")
		same, repeated := earlier[text]
		switch {
		case always >= 0:
			return &RouteError{Route: i, Err: fmt.Errorf("this route is never used: %s applies to every turn. Move it to the end, or give it a when that is not always true", name(always))}
		case repeated:
			return &RouteError{Route: i, Err: fmt.Errorf("this route is never used: %s has the same when. Remove one of the two, or change its when", name(same))}
		}
		earlier[text] = i
		result, err := resultOf(when)
		switch {
		case err != nil:
			return &RouteError{Route: i, When: true, Err: err}
		case result == neverTrue:
			return &RouteError{Route: i, When: true, Err: fmt.Errorf("it is true in no turn, so this route is never used: turn begins at 1, estimatedTokens at 0, and budgetLeft is from 0 to 1, the part of the limit that is left. Correct the expression, or remove the route")}
		case result == alwaysTrue:
			always = i
		}
	}
	return nil
}

func resultOf(when string) (outcome, error) {
	if when == "" {
		return alwaysTrue, nil
	}
	c, err := Compile(when)
	if err != nil {
		return varies, err
	}
	return c.result, nil
}
