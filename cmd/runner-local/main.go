// Command runner-local runs a task by hand, without a cluster:
//
//	runner-local --task testdata/task.json --workspace DIR --state DIR --key-env OPENAI_API_KEY
//
// It prints events as JSON lines and exits with the code that a pod would exit
// with. Run again with the same --state, it goes on where it stopped.
package main

import (
	"os"

	"github.com/deckhand-dev/deckhand/runner"
)

func main() { os.Exit(runner.MainLocal()) }
