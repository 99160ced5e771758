//go:build linux

// Command runner-local runs a task by hand, without a cluster:
//
//	runner-local --task testdata/task.json --workspace DIR --state DIR --key-env OPENAI_API_KEY
//
// It prints events as JSON lines and exits with the code that a pod would exit with. If it is run again with the same
// --state, it continues. A task of several agents and Models is in testdata/agents.json; where their keys are in more
// than one Secret, say --secrets DIR, with a file DIR/SECRET/KEY for each.
//
// What the operator and people would say goes into the file of --signals, at any time: {"stop":true}, or an answer, a
// grant or a message,
//
//	{"decisions":[{"name":"first","type":"Answer","by":"ann","value":"main"}]}
//
// each by a name of its own.
//
// Under the name sandbox it is that program too, so that kubectl deckhand run --local needs one program beside itself.
package main

import (
	"os"
	"path/filepath"

	"github.com/deckhand-dev/deckhand/runner"
	"github.com/deckhand-dev/deckhand/runner/sandbox"
)

func main() {
	if filepath.Base(os.Args[0]) == "sandbox" {
		os.Exit(sandbox.Main())
	}
	os.Exit(runner.MainLocal())
}
