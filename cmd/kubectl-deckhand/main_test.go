package main

import (
	"errors"
	"os"
	"os/exec"
	"testing"
)

const asProgram = "TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Args = []string{"kubectl-deckhand", "version"}
		main()
	}
	os.Exit(m.Run())
}

// A program that a signal ends leaves what it would remove: kubectl deckhand logs fix | head.
func TestAReaderThatEndsDoesNotEndTheProgram(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := read.Close(); err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	program := exec.CommandContext(t.Context(), os.Args[0])
	program.Env, program.Stdout, program.Stderr = append(os.Environ(), asProgram+"=1"), write, write
	if exit, failed := errors.AsType[*exec.ExitError](program.Run()); failed && !exit.Exited() {
		t.Error(exit)
	}
}
