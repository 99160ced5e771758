package deadpath

import (
	"testing"
	"time"
)

func TestIsDead(t *testing.T) {
	cases := map[string]struct {
		state state
		want  bool
	}{
		"a peer that was just heard lives":                           {state{silent: time.Second, retransmits: 9}, false},
		"a peer that acknowledges no data is dead":                   {state{silent: Limit, retransmits: 6}, true},
		"a peer that acknowledges no keep-alive is dead":             {state{silent: Limit, probes: 2}, true},
		"a silent peer that was sent nothing lives":                  {state{silent: time.Hour}, false},
		"the answer to the last question for a window is on its way": {state{silent: time.Minute, probes: 1}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.state.isDead(Limit); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
