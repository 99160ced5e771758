package run

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func speaks(version int32) func(*v1alpha1.RunProgress) {
	return func(p *v1alpha1.RunProgress) { p.Version = version }
}

// saysIn is a termination message in a version of the protocol.
func saysIn(version int) func(*corev1.ContainerStateTerminated) {
	return func(end *corev1.ContainerStateTerminated) {
		end.Message = string(task.Termination{Version: version, Attempt: 1, Result: task.Result{Committed: true, Reason: task.ReasonFinished}}.Encode())
	}
}

// Nothing that a runner of a newer protocol says is believed, not even its
// success: its words may mean something else by then.
func TestARunnerOfANewerProtocolIsRefused(t *testing.T) {
	cases := map[string]struct {
		beats []func(*cluster)
		want  string
	}{
		"a report of the same version":            {[]func(*cluster){reports(1, commits("Finished", ""))}, v1alpha1.ReasonFinished},
		"a report without a version":              {[]func(*cluster){reports(1, speaks(0), commits("Finished", ""))}, v1alpha1.ReasonFinished},
		"a result of a newer version":             {[]func(*cluster){reports(1, speaks(task.Version+1), commits("Finished", ""))}, v1alpha1.ReasonMisconfigured},
		"a report of a newer version":             {[]func(*cluster){reports(1, speaks(task.Version+1))}, v1alpha1.ReasonMisconfigured},
		"a last word of the same version":         {[]func(*cluster){exits(1, 0, saysIn(task.Version))}, v1alpha1.ReasonFinished},
		"a last word of a newer version":          {[]func(*cluster){exits(1, 0, saysIn(task.Version+1))}, v1alpha1.ReasonMisconfigured},
		"a report of another attempt is nobody's": {[]func(*cluster){reports(1, speaks(task.Version+1), func(p *v1alpha1.RunProgress) { p.Attempt = 7 })}, v1alpha1.ReasonStarting},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, gen.Run(), gen.Agent())
			c.begin()
			starts(1)(c)
			all(tc.beats...)(c)
			c.step()
			if got := reasonOf(c.run); got != tc.want {
				t.Fatalf("the reason is %s: %s, want %s", got, messageOf(c.run), tc.want)
			}
			if tc.want == v1alpha1.ReasonMisconfigured && !strings.Contains(messageOf(c.run), "version 2") {
				t.Errorf("the message does not say which version: %s", messageOf(c.run))
			}
		})
	}
}
