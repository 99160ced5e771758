// Command follow prints the events of a Run for people: kubectl logs -f of its
// pod on standard input, one line an event on standard output. With -tool it
// prints only what the tool of that name answered.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/step"
)

func main() {
	only := flag.String("tool", "", "print only the results of this tool")
	flag.Parse()
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var e step.Event
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.V == 0 {
			if *only == "" {
				fmt.Println(lines.Text()) // the runner's own log
			}
			continue
		}
		if *only != "" {
			result(e, *only)
		} else {
			show(e)
		}
	}
}

// result prints what one tool answered.
func result(e step.Event, tool string) {
	var finished events.StepFinished
	if e.Type == step.EventStepFinished && json.Unmarshal(e.Data, &finished) == nil && finished.Step.Name == tool {
		fmt.Println(finished.Step.Text())
	}
}

// show prints what a step brought; its deltas would say it twice.
func show(e step.Event) {
	var finished events.StepFinished
	switch e.Type { //nolint:exhaustive // the others are for programs
	case step.EventTextDelta, step.EventThinkingDelta, step.EventCallOutput, step.EventStepStarted, step.EventCallFinished:
		return
	case step.EventStepFinished:
		if json.Unmarshal(e.Data, &finished) != nil {
			return
		}
		if finished.Step.Role == step.RoleTool {
			fmt.Println(indent(finished.Step.Text()))
			return
		}
	}
	fmt.Printf("%s  %s\n", e.T.Format("15:04:05.000"), e.Message)
}

func indent(text string) string {
	return "              | " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n              | ")
}
