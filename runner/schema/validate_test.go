package schema_test

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/schema"
)

func TestValidate(t *testing.T) {
	const topic = `{"type":"object","required":["topic"],"properties":{"topic":{"type":"string"},"depth":{"type":"integer","maximum":3}}}`
	cases := map[string]struct {
		value string
		want  string // part of the error; empty: none
	}{
		"a value that fits":        {value: `{"topic":"tides","depth":2}`},
		"one with something more":  {value: `{"topic":"tides","color":"red"}`},
		"one that lacks something": {value: `{"depth":2}`, want: "topic"},
		"one of the wrong type":    {value: `{"topic":7}`, want: "topic"},
		"one beyond its bound":     {value: `{"topic":"tides","depth":9}`, want: "depth"},
		"one that is no object":    {value: `"tides"`, want: "object"},
		"one that is no JSON":      {value: `{"topic":`, want: "not JSON"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := schema.Validate([]byte(topic), []byte(tc.value))
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("Validate(%s) = %v, want %q", tc.value, err, tc.want)
			}
		})
	}
}
