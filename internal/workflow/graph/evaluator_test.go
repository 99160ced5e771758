package graph_test

import (
	"errors"
	"fmt"

	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
)

var errTooLarge = &graph.ReasonError{Reason: "TooLarge", Err: errors.New("the prompt is 70000 bytes of at most 65536: nodes.a.text")}

func items(node string, n int) expressions {
	return expressions{items: map[string]int{node: n}}
}

// stories are what happens when. Each is played beat by beat; what was seen is its
// golden file.
var stories = map[string]story{
	"sequence": {
		title: "one node after the other",
		nodes: list(one("a"), one("b", "a"), one("c", "b")),
		beats: []beat{succeed("a/0"), again(), succeed("b/0"), succeed("c/0")},
	},
	"diamond": {
		title: "two nodes side by side, and one that waits for both",
		nodes: list(one("a"), one("b", "a"), one("c", "a"), one("d", "b", "c")),
		beats: []beat{succeed("a/0"), succeed("c/0"), succeed("b/0"), succeed("d/0")},
	},
	"backwards": {
		title: "nodes may be listed before those that they wait for",
		nodes: list(one("d", "c"), one("c", "a", "b"), one("b", "a"), one("a")),
		beats: []beat{succeed("a/0"), succeed("b/0"), succeed("c/0"), succeed("d/0")},
	},
	"skipped": {
		title: "a node whose condition is false is skipped; what waits for it is not",
		nodes: list(one("a"), when(one("b", "a")), when(one("c", "b")), one("d", "b"), when(one("e", "d"))),
		says:  expressions{not: []string{"b", "e"}},
		beats: []beat{succeed("a/0"), succeed("c/0"), succeed("d/0")},
	},
	"all-skipped": {
		title: "a Run of which everything is skipped is done at once, after finally",
		nodes: list(when(one("a")), final(one("f"))),
		says:  expressions{not: []string{"a"}},
		beats: []beat{succeed("f/0")},
	},
	"condition-fails": {
		title: "a condition that cannot be read fails the node, and nothing starts beside it",
		nodes: list(one("a"), one("b", "a"), when(one("c", "a"))),
		says:  expressions{fails: map[string]error{"when c": errTest}},
		beats: []beat{succeed("a/0")},
	},
	"failed": {
		title: "the first failure stops what works, keeps the rest from starting, and finally runs",
		nodes: list(one("a"), one("b"), one("c", "a"), final(one("f"))),
		beats: []beat{fails("b/0", "StepLimit"), fails("a/0", "Stopped"), succeed("f/0")},
	},
	"failed-done": {
		title: "what was done before it could be stopped has been done",
		nodes: list(one("a"), one("b")),
		beats: []beat{fails("b/0", "StepLimit"), succeed("a/0")},
	},
	"failed-twice": {
		title: "the first that failed is named, whatever comes after",
		nodes: list(one("a"), one("b"), one("c")),
		beats: []beat{fails("c/0", "StepLimit"), fails("a/0", "Stuck"), fails("b/0", "Stopped")},
	},
	"failed-stopped": {
		title: "a node whose Run a person stops has failed",
		nodes: list(one("a"), one("b")),
		beats: []beat{fails("b/0", "Stopped"), fails("a/0", "Stopped")},
	},
	"continue": {
		title: "a node that may fail: the Run goes on, and counts it",
		nodes: list(goOn(one("a")), one("b", "a"), one("c")),
		beats: []beat{fails("a/0", "StepLimit"), succeed("c/0"), succeed("b/0")},
	},
	"loop": {
		title: "a loop ends when it is good",
		nodes: list(loop("a", 5), one("b", "a")),
		says:  expressions{good: map[string]int{"a": 3}},
		beats: []beat{succeed("a/1"), again(), succeed("a/2"), succeed("a/3"), succeed("b/0")},
	},
	"loop-limit": {
		title: "a loop that does not become good fails",
		nodes: list(loop("a", 2), one("b", "a")),
		beats: []beat{succeed("a/1"), succeed("a/2")},
	},
	"loop-failed": {
		title: "an iteration that fails is the end of its loop",
		nodes: list(goOn(loop("a", 3)), one("b", "a")),
		beats: []beat{succeed("a/1"), fails("a/2", "TokenLimit"), succeed("b/0")},
	},
	"loop-unreadable": {
		title: "a loop whose until cannot be read fails",
		nodes: list(loop("a", 3)),
		says:  expressions{fails: map[string]error{"until a": errTest}},
		beats: []beat{succeed("a/1")},
	},
	"loop-stopped": {
		title: "a loop between two iterations is stopped as well",
		nodes: list(loop("a", 3)),
		beats: []beat{refuse("a", "Queued"), succeed("a/1"), stop("Stopped")},
	},
	"items": {
		title: "items in order, so many at once",
		nodes: list(each("a", 2), one("b", "a")),
		says:  items("a", 5),
		beats: []beat{succeed("a/1"), succeed("a/2", "a/0"), again(), succeed("a/3", "a/4"), succeed("b/0")},
	},
	"items-none": {
		title: "no items: the node has succeeded",
		nodes: list(each("a", 2), one("b", "a")),
		beats: []beat{succeed("b/0")},
	},
	"items-failed": {
		title: "the first item that fails keeps the others from starting and stops those that work",
		nodes: list(each("a", 3), one("b", "a"), one("c")),
		says:  items("a", 7),
		beats: []beat{succeed("a/1"), fails("a/2", "Stuck"), fails("a/0", "Stopped"), fails("c/0", "Stopped"), succeed("a/3")},
	},
	"items-continue": {
		title: "items that may fail: all are tried",
		nodes: list(goOn(each("a", 2)), one("b", "a")),
		says:  items("a", 4),
		beats: []beat{fails("a/0", "Stuck"), succeed("a/1"), fails("a/2", "Stuck"), succeed("a/3"), succeed("b/0")},
	},
	"items-all-fail": {
		title: "items that may fail, and all do: so has the node",
		nodes: list(goOn(each("a", 2)), one("b", "a")),
		says:  items("a", 2),
		beats: []beat{fails("a/1", "Stuck"), fails("a/0", "StepLimit"), succeed("b/0")},
	},
	"items-too-many": {
		title: "ten thousand items fail the node before one starts",
		nodes: list(each("a", 2), final(one("f"))),
		says:  items("a", 10_000),
		beats: []beat{succeed("f/0")},
	},
	"items-no-room": {
		title: "items for which there is no room, beside those that others have or need",
		nodes: list(goOn(each("a", 1)), each("b", 1), one("c", "b")),
		says:  expressions{items: map[string]int{"a": 9, "b": 4}},
		room:  10,
		beats: []beat{succeed("b/0"), succeed("b/1"), succeed("b/2"), succeed("b/3"), succeed("c/0")},
	},
	"items-unreadable": {
		title: "an item whose prompt cannot be worked out fails the node",
		nodes: list(each("a", 2)),
		says:  expressions{items: map[string]int{"a": 4}, fails: map[string]error{"input a/2": errTooLarge}},
		beats: []beat{succeed("a/0"), succeed("a/1")},
	},
	"items-unreadable-continue": {
		title: "the same where the Run goes on: those that work may finish",
		nodes: list(goOn(each("a", 2)), one("b", "a")),
		says:  expressions{items: map[string]int{"a": 4}, fails: map[string]error{"input a/2": errTooLarge}},
		beats: []beat{succeed("a/0"), succeed("a/1"), succeed("b/0")},
	},
	"items-stopped": {
		title: "items that are stopped, though they may fail, are not done",
		nodes: list(goOn(each("a", 2))),
		says:  items("a", 4),
		beats: []beat{succeed("a/0"), stop("Stopped"), succeed("a/1"), fails("a/2", "Stopped")},
	},
	"fan-out": {
		title: "500 items, half of which fail, where the Run goes on",
		nodes: list(goOn(each("check", 100)), final(one("f"))),
		says:  items("check", 500),
		beats: append(halves(5), succeed("f/0")),
	},
	"fan-out-failed": {
		title: "500 items, of which the first failure ends the Run",
		nodes: list(each("check", 100), final(one("f"))),
		says:  items("check", 500),
		beats: append([]beat{succeed("check/0", "check/2", "check/4")}, append(halves(1), succeed("f/0"))...),
	},
	"approved": {
		title: "an approval waits for a person",
		nodes: list(ask("gate"), one("a", "gate"), one("b")),
		beats: []beat{succeed("b/0"), says("gate", graph.Open), says("gate", graph.Approved), succeed("a/0")},
	},
	"denied": {
		title: "a person says no",
		nodes: list(ask("gate"), one("a", "gate"), final(one("f"))),
		beats: []beat{says("gate", graph.Denied), succeed("f/0")},
	},
	"denied-read": {
		title: "a person says no, and somebody reads it",
		nodes: list(lenient(ask("gate")), when(one("a", "gate"))),
		says:  expressions{not: []string{"a"}},
		beats: []beat{says("gate", graph.Denied)},
	},
	"expired": {
		title: "nobody answers in time",
		nodes: list(ask("gate"), goOn(ask("second")), lenient(ask("third"))),
		beats: []beat{says("second", graph.Expired), says("third", graph.Expired), says("gate", graph.Expired)},
	},
	"unasked": {
		title: "an approval that is no longer needed is not asked about any more",
		nodes: list(ask("gate"), one("a")),
		beats: []beat{fails("a/0", "Stuck")},
	},
	"unaskable": {
		title: "an approval whose message cannot be worked out is not asked",
		nodes: list(ask("other"), ask("gate")),
		says:  expressions{fails: map[string]error{"input gate": errTest}},
	},
	"stopped": {
		title: "a Run that is stopped: what works is stopped, then finally runs",
		nodes: list(one("a"), one("b", "a"), final(one("f"))),
		beats: []beat{stop("Stopped"), fails("a/0", "Stopped"), succeed("f/0")},
	},
	"stopped-finally": {
		title: "what finally does can be stopped too",
		nodes: list(one("a"), final(one("f")), final(one("g", "f"))),
		beats: []beat{
			succeed("a/0"), does("finally is to end", func(c *cluster) { c.finallyEnd = "DurationLimit" }), fails("f/0", "Stopped"),
		},
	},
	"limit": {
		title: "a node and the whole reach a limit at once: it is that of the whole",
		nodes: list(one("a"), one("b", "a"), final(one("f"))),
		beats: []beat{does("a/0 fails and nothing is left: TokenLimit", func(c *cluster) { c.ends("a/0", "TokenLimit"); c.end = "TokenLimit" }), succeed("f/0")},
	},
	"limit-too-late": {
		title: "a limit that is reached when all is done ends nothing",
		nodes: list(one("a"), final(one("f"))),
		beats: []beat{does("a/0 succeeds and nothing is left", func(c *cluster) { c.ends("a/0", ""); c.end = "DeadlineExceeded" }), succeed("f/0")},
	},
	"limit-too-late-continue": {
		title: "the same where a node has failed that may",
		nodes: list(goOn(one("a"))),
		beats: []beat{does("a/0 fails and nothing is left", func(c *cluster) { c.ends("a/0", "StepLimit"); c.end = "TokenLimit" })},
	},
	"paused-winding": {
		title: "a Run that is paused while it winds up stops nothing",
		nodes: list(one("a"), one("b")),
		beats: []beat{fails("a/0", "Stuck"), pause(), resume(), fails("b/0", "Stopped")},
	},
	"stopped-after-failure": {
		title: "a Run that is stopped when a node has failed ends for the node",
		nodes: list(one("a"), one("b"), final(one("f"))),
		beats: []beat{fails("a/0", "Stuck"), stop("Stopped"), fails("b/0", "Stopped"), succeed("f/0")},
	},
	"paused": {
		title: "while a Run is paused nothing starts, but what ends is recorded",
		nodes: list(one("a"), one("b", "a"), each("c", 1), ask("gate", "a")),
		says:  items("c", 2),
		beats: []beat{pause(), succeed("a/0"), succeed("c/0"), resume()},
	},
	"paused-failure": {
		title: "a failure while a Run is paused stops what works when it goes on",
		nodes: list(one("a"), one("b"), one("c", "a"), ask("gate"), final(one("f"))),
		beats: []beat{pause(), fails("a/0", "Stuck"), resume(), fails("b/0", "Stopped"), succeed("f/0")},
	},
	"final-fails": {
		title: "a node of finally that fails changes nothing but the message",
		nodes: list(one("a"), final(one("f")), final(one("g", "f")), final(one("h"))),
		beats: []beat{succeed("a/0"), fails("f/0", "Stuck"), succeed("h/0"), succeed("g/0")},
	},
	"final-room": {
		title: "finally has room when all is used up",
		nodes: list(each("a", 9), final(one("f")), final(each("g", 3, "f"))),
		says:  expressions{items: map[string]int{"a": 3, "g": 2}},
		room:  3,
		beats: []beat{succeed("a/0", "a/1", "a/2"), succeed("f/0")},
	},
	"crash-stopped": {
		title: "a crash after items that may fail were stopped: they were not done",
		nodes: list(goOn(each("a", 2))),
		says:  items("a", 2),
		beats: []beat{
			succeed("a/0"), does("the Run is to end, the operator stops a/1 and crashes", func(c *cluster) { c.end = "Stopped"; c.look(); c.ends("a/1", "Stopped") }),
		},
	},
	"deleted": {
		title: "a child that somebody deletes is not made again",
		nodes: list(one("a"), one("b", "a")),
		beats: []beat{deleted("a/0")},
	},
	"deleted-items": {
		title: "an item that somebody deletes has failed",
		nodes: list(goOn(each("a", 2))),
		says:  items("a", 3),
		beats: []beat{succeed("a/0"), deleted("a/1"), succeed("a/2")},
	},
	"deleted-iteration": {
		title: "an iteration that somebody deletes is missed if it is the last",
		nodes: list(loop("a", 4)),
		beats: []beat{succeed("a/1"), deleted("a/1"), deleted("a/2")},
	},
	"deleted-late": {
		title: "a child deleted when its node has ended is not missed",
		nodes: list(one("a"), one("b", "a")),
		beats: []beat{succeed("a/0"), deleted("a/0"), succeed("b/0")},
	},
	"crash-before": {
		title: "a crash before anything is made",
		nodes: list(one("a"), one("b", "a"), one("c", "a")),
		beats: []beat{does("a/0 succeeds, the operator crashes", func(c *cluster) { c.ends("a/0", ""); c.look() }), succeed("b/0", "c/0")},
	},
	"crash-between": {
		title: "a crash after some of it was made",
		nodes: list(one("a"), one("b", "a"), one("c", "a")),
		beats: []beat{does("a/0 succeeds", func(c *cluster) { c.ends("a/0", ""); crash(1).do(c) }), succeed("b/0", "c/0")},
	},
	"crash-items": {
		title: "a crash when some items were made",
		nodes: list(each("a", 3)),
		says:  items("a", 5),
		beats: []beat{
			does("all end, and the operator crashes when it has made 1", func(c *cluster) {
				for _, at := range []string{"a/0", "a/1", "a/2"} {
					c.ends(at, "")
				}
				crash(1).do(c)
			}),
			succeed("a/3", "a/4"),
		},
	},
	"crash-items-first": {
		title: "a crash before it was recorded how many items there are",
		nodes: list(one("z"), each("a", 2, "z")),
		says:  items("a", 3),
		beats: []beat{
			does("z/0 succeeds, the operator crashes, and a/1 ends", func(c *cluster) { c.ends("z/0", ""); crash(2).do(c); c.ends("a/1", "") }),
			succeed("a/0", "a/2"),
		},
	},
	"crash-loop": {
		title: "a crash after an iteration was made",
		nodes: list(loop("a", 3)),
		says:  expressions{good: map[string]int{"a": 2}},
		beats: []beat{does("a/1 succeeds", func(c *cluster) { c.ends("a/1", ""); crash(1).do(c) }), succeed("a/2")},
	},
	"crash-failure": {
		title: "a crash after a failure: what was stopped meanwhile did not end the Run",
		nodes: list(one("a"), one("b"), one("c", "b")),
		beats: []beat{does("b/0 fails, the operator stops a/0 and crashes", func(c *cluster) { c.ends("b/0", "Stuck"); c.look(); c.ends("a/0", "Stopped") })},
	},
	"queued": {
		title: "too little left: a node waits, and is not asked for its condition again",
		nodes: list(one("a"), when(one("b")), one("c")),
		queue: "b",
		beats: []beat{succeed("c/0"), again(), admit("b"), succeed("a/0", "b/0")},
	},
	"queued-items": {
		title: "too little left for all items at once",
		nodes: list(each("a", 3, "z"), one("z")),
		says:  items("a", 3),
		beats: []beat{
			refuse("a/1", "Queued"), succeed("z/0"), succeed("a/0"), admit("a/1"), succeed("a/1", "a/2"),
		},
	},
	"queued-all-items": {
		title: "too little left for any item: they are not counted again",
		nodes: list(each("a", 3, "z"), one("z")),
		says:  items("a", 3),
		beats: []beat{refuse("a", "QuotaExceeded"), succeed("z/0"), again(), admit("a"), succeed("a/0", "a/1", "a/2")},
	},
	"queued-loop": {
		title: "a loop waits for what its next iteration needs",
		nodes: list(loop("a", 3)),
		says:  expressions{good: map[string]int{"a": 2}},
		beats: []beat{refuse("a/2", "Queued"), succeed("a/1"), admit("a/2"), succeed("a/2")},
	},
	"refused": {
		title: "a Run that the cluster refuses fails its node, and nothing is made beside it",
		nodes: list(one("z"), one("a", "z"), one("b", "z"), goOn(each("c", 2))),
		says:  items("c", 3),
		beats: []beat{refuse("b", "RunRefused"), succeed("z/0"), fails("c/0", "Stopped"), succeed("c/1")},
	},
	"refused-items": {
		title: "an item that is refused where the Run goes on",
		nodes: list(goOn(each("a", 2)), one("b", "a")),
		says:  items("a", 4),
		beats: []beat{refuse("a/2", "RunRefused"), succeed("a/0"), succeed("a/1"), succeed("b/0")},
	},
	"message": {
		title: "a message names a few of many that failed, and what an expression failed of before",
		nodes: list(goOn(one("a")), goOn(one("b")), goOn(one("c")), goOn(one("d")), when(one("e", "d")), final(one("f"))),
		says:  expressions{fails: map[string]error{"when e": errTest}},
		beats: []beat{
			fails("a/0", "Stuck"), fails("b/0", "Stuck"), fails("c/0", "Stuck"), fails("d/0", "Stuck"), fails("f/0", "Stuck"),
		},
	},
	"dead-end": {
		title: fmt.Sprintf("an iteration for which there is no room: a Run has at most %d", graph.MaxChildren),
		nodes: list(loop("a", 3), one("b", "a")),
		room:  2,
		beats: []beat{succeed("a/1")},
	},
}
