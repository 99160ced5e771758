package cli

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/cli/exit"
)

func TestHelpGroupsCommands(t *testing.T) {
	s := newSession(t)
	if code := s.run(t, "--help"); code != exit.OK {
		t.Fatal(s.text())
	}
	golden(t, "help.txt", s.text())
	if code := s.run(t, "why", "--help"); code != exit.OK {
		t.Fatal(s.text())
	}
	golden(t, "help-why.txt", s.text())
}

func TestEachCommandHasAGroup(t *testing.T) {
	root := newRoot(newSession(t).Factory, "v1.2.3")
	others := "version options completion"
	for _, c := range root.Commands() {
		if c.GroupID == "" && !strings.Contains(others, c.Name()) {
			t.Errorf("%s has no group", c.Name())
		}
	}
}

func TestOptionsPrintsTheFlagsOfAllCommands(t *testing.T) {
	s := newSession(t)
	if code := s.run(t, "options"); code != exit.OK {
		t.Fatal(s.text())
	}
	for _, flag := range []string{"--context", "--namespace", "--as ", "--kubeconfig"} {
		if !strings.Contains(s.out.String(), flag) {
			t.Errorf("%s is missing: %s", flag, s.out.String())
		}
		s := newSession(t)
		if s.run(t, "why", "--help"); strings.Contains(s.out.String(), flag) {
			t.Errorf("the help of why has %s: %s", flag, s.out.String())
		}
	}
}

func TestUnknownCommandsSayWhatThereIs(t *testing.T) {
	for line, want := range map[string]string{
		"lits":                          `there is no command "lits". Did you mean lint, list`,
		"aprove fix":                    `there is no command "aprove". Did you mean approve?`,
		"Reusme fix":                    `Did you mean resume?`,
		"descrbe fix":                   `Did you mean describe?`,
		"delete fix":                    "kubectl delete run NAME",
		"cancel fix":                    "kubectl deckhand stop NAME",
		"rerun fix":                     "kubectl deckhand run --from run/NAME",
		"rerun fix --wait":              "kubectl deckhand run --from run/NAME",
		"unpause fix":                   "kubectl deckhand resume NAME",
		"create agent":                  "kubectl deckhand run AGENT TEXT",
		"something-else":                "See: kubectl deckhand --help",
		"list --wacth":                  "unknown flag: --wacth; did you mean --watch? See: kubectl deckhand list --help",
		"list --entirely":               "unknown flag: --entirely. See: kubectl deckhand list --help",
		"why fix --outptu":              "unknown flag: --outptu; did you mean --output? See: kubectl deckhand why --help",
		"list --all":                    "unknown flag: --all. See: kubectl deckhand list --help",
		"foo":                           "there is no command \"foo\". See: kubectl deckhand --help",
		"exec fix -- ls":                "Commands cannot be run in a Run. To copy its files: kubectl deckhand cp",
		"list --limit x":                "--limit x: write a whole number. See: kubectl deckhand list --help",
		"logs fix --attempt=1.5":        "--attempt 1.5: write a whole number",
		"grant fix --steps 99999999999": "--steps 99999999999: write a whole number",
		"run fixer --timeout 5":         "--timeout 5: write a time such as 90s, 10m or 1h30m",
		"run fixer --wait=maybe":        "--wait maybe: write true or false, or the flag alone",
		"list -x":                       "unknown shorthand flag",
	} {
		s := newSession(t)
		if code := s.run(t, strings.Fields(line)...); code != exit.Usage || !strings.Contains(s.err.String(), want) {
			t.Errorf("%s: exit code %d, want %q in: %s", line, code, want, s.text())
		}
	}
}

// A word with two meanings would call one of them.
func TestEachWordOfOtherProgramsHasOneMeaning(t *testing.T) {
	root := newRoot(newSession(t).Factory, "v1.2.3")
	meaning := map[string]string{}
	for _, c := range root.Commands() {
		for _, name := range append([]string{c.Name()}, c.Aliases...) {
			if other, taken := meaning[name]; taken {
				t.Errorf("%s is %s and %s", name, other, c.Name())
			}
			meaning[name] = c.Name()
		}
	}
	for _, i := range instead {
		for word := range strings.FieldsSeq(i.words) {
			if other, taken := meaning[word]; taken {
				t.Errorf("%s is %s and has a hint", word, other)
			}
			meaning[word] = i.hint
			for _, part := range strings.Split(i.hint, "kubectl deckhand ")[1:] {
				if command, _, err := root.Find(strings.Fields(part)[:1]); err != nil || command == root {
					t.Errorf("%s: there is no command %q", word, part)
				}
			}
		}
	}
}

func TestAliasesCallTheirCommand(t *testing.T) {
	for line, want := range map[string]string{
		"ls":               "list -o name",
		"get fix":          "why fix",
		"describe run/fix": "why fix",
		"describe run fix": "why fix",
		"inbox":            "pending",
	} {
		s := newSession(t, runWithRequests())
		s.run(t, strings.Fields(strings.Replace(line, "ls", "ls -o name", 1))...)
		got := s.text()
		s.run(t, strings.Fields(want)...)
		if got != s.text() || s.out.Len() == 0 {
			t.Errorf("%s printed %s, and %s %s", line, got, want, s.text())
		}
	}
}
