package graph_test

import (
	std "cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
)

var update = flag.Bool("update", false, "rewrite the golden stories")

// A beat is something that happens, before the next look.
type beat struct {
	what string
	do   func(*cluster)
}

func does(what string, do func(*cluster)) beat { return beat{what, do} }

// succeed ends children well.
func succeed(places ...string) beat {
	return does(strings.Join(places, ", ")+" succeed", func(c *cluster) {
		for _, at := range places {
			c.ends(at, "")
		}
	})
}

// fails ends a child badly.
func fails(at, reason string) beat {
	return does(at+" fails: "+reason, func(c *cluster) { c.ends(at, reason) })
}

// deleted removes a child.
func deleted(at string) beat {
	return does("somebody deletes "+at, func(c *cluster) {
		maps.DeleteFunc(c.children, func(s graph.Start, _ *graph.Child) bool { return place(s) == at })
	})
}

func says(node string, v graph.ApprovalState) beat {
	return does(fmt.Sprintf("%s: %s", node, v), func(c *cluster) { c.verdicts[node] = v })
}

func stop(reason string) beat {
	return does("the Run is to end: "+reason, func(c *cluster) { c.end = reason })
}

func refuse(at, reason string) beat {
	return does(at+" is not admitted: "+reason, func(c *cluster) { c.refuses[at] = reason })
}

func admit(at string) beat {
	return does(at+" is admitted", func(c *cluster) { delete(c.refuses, at) })
}

func again() beat { return does("time passes", func(*cluster) {}) }

func pause() beat  { return does("the Run is paused", func(c *cluster) { c.paused = true }) }
func resume() beat { return does("the Run goes on", func(c *cluster) { c.paused = false }) }

// crash looks, makes the first few of what starts and forgets that it did.
func crash(made int) beat {
	return does(fmt.Sprintf("the operator crashes when it has made %d", made), func(c *cluster) {
		starts := c.look().Start
		c.makes(starts[:min(made, len(starts))])
	})
}

// play plays a story to its end.
func (s story) play(t *testing.T) string {
	t.Helper()
	c := set(t, s.nodes, s.says)
	if s.room > 0 {
		c.room = s.room
	}
	if s.queue != "" {
		c.refuses[s.queue] = graph.ReasonQueued
	}
	fmt.Fprintf(&c.log, "# %s\n", s.title)
	c.beat(does("it begins", func(*cluster) {}))
	for _, b := range s.beats {
		c.beat(b)
	}
	return c.log.String()
}

// beat lets something happen, looks, and says what came of it.
func (c *cluster) beat(b beat) {
	c.t.Helper()
	fmt.Fprintf(&c.log, "* %s\n", b.what)
	before := c.recorded
	b.do(c)
	c.moves()
	for _, n := range c.nodes {
		if now := c.next.Nodes[n.Name]; now != before[n.Name] {
			fmt.Fprintf(&c.log, "    %s %s\n", n.Name, reads(now))
		}
		if p, failed := c.next.Problems[n.Name]; failed {
			fmt.Fprintf(&c.log, "    %s: %s\n", n.Name, p)
		}
	}
	c.list("makes", places(c.next.Start))
	c.list("asks", c.next.Ask)
	c.list("stops", c.next.Cancel)
	if c.next.Ended {
		fmt.Fprintf(&c.log, "    ends %s\n      %s\n", strings.TrimSpace(std.Or(c.next.Reason, "well")+" "+c.next.Failed), c.next.Message)
	}
}

// list says a list, cut where it is long.
func (c *cluster) list(what string, names []string) {
	const most = 6
	switch n := len(names); {
	case n > most:
		fmt.Fprintf(&c.log, "    %s %s … %s (%d)\n", what, names[0], names[n-1], n)
	case n > 0:
		fmt.Fprintf(&c.log, "    %s %s\n", what, strings.Join(names, ", "))
	}
}

func places(starts []graph.Start) []string {
	var out []string
	for _, s := range starts {
		out = append(out, place(s))
	}
	return out
}

// reads is a status for people.
func reads(s graph.Status) string {
	text := strings.TrimSpace(string(s.State) + " " + s.Reason)
	if s.Total == 0 {
		return text
	}
	text += fmt.Sprintf(" (%d of %d began", s.Started, s.Total)
	for _, n := range []struct {
		of   int
		what string
	}{{s.Succeeded, "succeeded"}, {s.Failed, "failed"}, {s.Skipped, "skipped"}} {
		if n.of > 0 {
			text += fmt.Sprintf(", %d %s", n.of, n.what)
		}
	}
	return text + ")"
}

func TestStories(t *testing.T) {
	for name, s := range stories {
		t.Run(name, func(t *testing.T) {
			golden := filepath.Join("testdata", "stories", name+".golden")
			got := s.play(t)
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the story differs (-want +got); go test ./internal/workflow/graph -update rewrites it:\n%s", diff)
			}
		})
	}
}

// Every golden file is a story.
func TestGoldenFilesAreStories(t *testing.T) {
	files, err := filepath.Glob("testdata/stories/*")
	if err != nil || len(files) != len(stories) {
		t.Errorf("%d golden files (%v), want %d", len(files), err, len(stories))
	}
	for _, f := range files {
		if _, told := stories[strings.TrimSuffix(filepath.Base(f), ".golden")]; !told {
			t.Errorf("%s is no story", f)
		}
	}
}

type story struct {
	title string
	nodes []graph.Node
	says  expressions
	room  int
	queue string // what is not admitted from the beginning
	beats []beat
}

// halves ends what works of check, a few at a time: every second item badly.
func halves(looks int) []beat {
	var out []beat
	for range looks {
		out = append(out, does("what works ends, every second badly", func(c *cluster) {
			for _, s := range c.working() {
				c.ends(place(s), []string{"", "StepLimit"}[s.Number%2])
			}
		}))
	}
	return out
}
