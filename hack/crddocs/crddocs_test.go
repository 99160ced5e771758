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

              It has at most
              16.
            properties:
              quoted:
                description: "Example: \n\n\tspec:\n\t    agent: a\n\nThat is
                  \\ all."
                type: string
              prompt:
                description: one line
`
	const want = `          spec:
            description: |-
              A Run is one piece of work. It is done once.

              Its states:
              - Running: a pod works
              - Paused

              It has at most 16.
            properties:
              quoted:
                description: |-
                  Example:

                      spec:
                          agent: a

                  That is \ all.
                type: string
              prompt:
                description: one line
`
	for name, text := range map[string]string{"once": crd, "again": want} {
		if got, err := join(text); err != nil || got != want {
			t.Errorf("%s: %v\n%s\nwant:\n%s", name, err, got, want)
		}
	}
}

func TestNumbersOfTokensHaveAMinimum(t *testing.T) {
	t.Parallel()
	const other = `                  name:
                    pattern: ^[a-z]+$
`
	const crd = other + `                  tokens:
                    maxLength: 16
                    pattern: ^[1-9][0-9]{0,11}(k|M|G)?$
                    x-kubernetes-int-or-string: true
`
	const want = other + `                  tokens:
                    maxLength: 16
                    minimum: 1
                    pattern: ^[1-9][0-9]{0,11}(k|M|G)?$
                    x-kubernetes-int-or-string: true
`
	for name, text := range map[string]string{"once": crd, "again": want} {
		if got := bound(text); got != want {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}
