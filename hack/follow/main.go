// Command follow prints the events of a Run for people. It reads the log of the
// Run's pod on standard input (kubectl logs -f POD), and prints what the model
// wrote, the tools that it called and what they returned.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/step"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 4<<20)
	var parallel []step.Call
	for lines.Scan() {
		var e step.Event
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.V == 0 {
			fmt.Println(logged(lines.Text()))
			continue
		}
		parallel = show(e, parallel)
	}
}

// logged is a line of the runner's own log, for people.
func logged(line string) string {
	var record struct {
		Time       time.Time
		Level, Msg string
	}
	if json.Unmarshal([]byte(line), &record) != nil || record.Msg == "" {
		return line
	}
	return fmt.Sprintf("%s  %s: %s", record.Time.Format(clock), record.Level, record.Msg)
}

const clock = "15:04:05.000"

// show prints what a step brought; its deltas would say it twice. It returns the calls
// that the model made at the same time, whose results then say which they belong to.
func show(e step.Event, parallel []step.Call) []step.Call {
	var finished events.StepFinished
	switch e.Type { //nolint:exhaustive // the others are for programs
	case step.EventTextDelta, step.EventThinkingDelta, step.EventCallOutput, step.EventStepStarted, step.EventCallFinished:
		return parallel
	case step.EventStepFinished:
		if json.Unmarshal(e.Data, &finished) != nil {
			return parallel
		}
		if finished.Step.Role == step.RoleTool {
			if at := slices.IndexFunc(parallel, func(c step.Call) bool { return c.ID == finished.Step.CallID }); at >= 0 {
				fmt.Printf("              %s %s\n", parallel[at].Name, parallel[at].Args)
			}
			fmt.Println(indent(finished.Step.Text()))
			return parallel
		}
		parallel = nil
		if len(finished.Step.Calls) > 1 {
			parallel = finished.Step.Calls
		}
	}
	fmt.Printf("%s  %s\n", e.T.Format(clock), e.Message)
	return parallel
}

func indent(text string) string {
	return "              | " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n              | ")
}
