package main

import "testing"

func TestJoin(t *testing.T) {
	t.Parallel()
	const crd = `          spec:
            description: |-
              A Run is one piece of work. It is
              done once.

              Its states:
              - Running: a pod
                works
              - Paused
            properties:
              prompt:
                description: one line
`
	const want = `          spec:
            description: |-
              A Run is one piece of work. It is done once.

              Its states:
              - Running: a pod
                works
              - Paused
            properties:
              prompt:
                description: one line
`
	if got := join(crd); got != want {
		t.Errorf("joined:\n%s\nwant:\n%s", got, want)
	}
	if again := join(want); again != want {
		t.Errorf("joined again:\n%s", again)
	}
}
