// Package soak kills parts of Deckhand at seeded random moments, and counts what held.
//
// A soak has three layers, which share this package. Each plays Runs until enough was
// killed, and checks the Invariants after every Run:
//
//   - runner: the runner as a process of this machine, with its journal on disk, between a
//     scripted model, an API server that takes its reports, and a server of effects. The
//     tests are in package runner.
//   - operator: two operators that both lead on a real API server, with simulated pods. The
//     tests are in this package.
//   - cluster: everything on a real cluster. The test is in test/e2e.
//
// SOAK_SEED chooses the moments, SOAK_KILLS how many there are, and SOAK_RUN plays only the Run of that number. Seed
// and number determine what happens to a Run, except for the order of calls of one turn, which run in parallel.
package soak

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// The variables of the environment that a soak reads. EnvOut is a directory for its Tally;
// empty: none is written.
const (
	EnvSeed  = "SOAK_SEED"
	EnvKills = "SOAK_KILLS"
	EnvRun   = "SOAK_RUN"
	EnvOut   = "SOAK_OUT"
)

// defaultSeed is the seed of the short soak in CI, so that its result is reproducible.
const defaultSeed = 1

// A Tally is what one layer of a soak found.
type Tally struct {
	Layer string `json:"layer"`
	Seed  uint64 `json:"seed"`
	Runs  int    `json:"runs"`
	// Kills counts by the killed process, Effects counts the effects of all Runs by their outcome.
	Kills      map[string]int `json:"kills"`
	Effects    map[string]int `json:"effects"`
	Violations []Violation    `json:"violations,omitempty"`
}

// A Violation is an invariant that did not hold for a Run.
type Violation struct {
	Run       int       `json:"run"`
	Invariant Invariant `json:"invariant"`
	Text      string    `json:"text"`
}

// Total returns the number of kills.
func (t Tally) Total() int {
	total := 0
	for _, n := range t.Kills {
		total += n
	}
	return total
}

// A Soak counts the kills and violations of one layer. It is safe for concurrent use.
type Soak struct {
	Seed  uint64
	kills int // wanted
	only  int // the number of the only Run; -1: all

	mu    sync.Mutex
	next  int
	tally Tally
}

// Start reads the environment and logs the seed. At the end of the test each violation is an
// error that says how to repeat it. kills is the number without SOAK_KILLS.
func Start(t *testing.T, layer string, kills int) *Soak {
	t.Helper()
	s := New(layer, number(t, EnvSeed, uint64(defaultSeed)), number(t, EnvKills, kills))
	s.only = number(t, EnvRun, -1)
	t.Logf("%s=%d repeats this soak of the %s", EnvSeed, s.Seed, layer)
	t.Cleanup(func() { s.finish(t) })
	return s
}

// New makes a Soak that does not read the environment.
func New(layer string, seed uint64, kills int) *Soak {
	return &Soak{
		Seed: seed, kills: kills, only: -1,
		tally: Tally{Layer: layer, Seed: seed, Kills: map[string]int{}, Effects: map[string]int{}},
	}
}

// number reads a variable of the environment.
func number[N int | uint64](t *testing.T, name string, otherwise N) N {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	var n N
	if _, err := fmt.Sscan(text, &n); err != nil {
		t.Fatalf("reading %s=%s: %v", name, text, err)
	}
	return n
}

// Next returns the number of the next Run and its dice; false: enough was killed.
func (s *Soak) Next() (run int, dice *rand.Rand, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.only >= 0 && s.next > 0, s.only < 0 && s.tally.Total() >= s.kills:
		return 0, nil, false
	case s.only >= 0:
		run = s.only
	default:
		run = s.next
	}
	s.next++
	return run, rand.New(rand.NewPCG(s.Seed, uint64(run))), true //nolint:gosec // a seed is to be guessed
}

// Killed counts a kill.
func (s *Soak) Killed(what string) { s.add(func(t *Tally) { t.Kills[what]++ }) }

// Ended counts a Run that was checked, and what became of its effects.
func (s *Soak) Ended(effects map[string]int) {
	s.add(func(t *Tally) {
		t.Runs++
		for became, n := range effects {
			t.Effects[became] += n
		}
	})
}

// Violated counts a violation.
func (s *Soak) Violated(run int, i Invariant, format string, args ...any) {
	s.add(func(t *Tally) {
		t.Violations = append(t.Violations, Violation{Run: run, Invariant: i, Text: fmt.Sprintf(format, args...)})
	})
}

func (s *Soak) add(change func(*Tally)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.tally)
}

// Tally returns the counts so far.
func (s *Soak) Tally() Tally {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tally
	t.Kills, t.Effects, t.Violations = maps.Clone(t.Kills), maps.Clone(t.Effects), slices.Clone(t.Violations)
	return t
}

// finish reports what was counted.
func (s *Soak) finish(t *testing.T) {
	tally := s.Tally()
	t.Logf("%d Runs, %d kills: %s; effects: %s", tally.Runs, tally.Total(), counts(tally.Kills), counts(tally.Effects))
	for _, v := range tally.Violations {
		t.Errorf("%s violated: Run %d: %s (%s=%d %s=%d repeats it)", v.Invariant, v.Run, v.Text, EnvSeed, s.Seed, EnvRun, v.Run)
	}
	if tally.Runs == 0 {
		t.Errorf("no Run was checked")
	}
	if err := tally.write(os.Getenv(EnvOut)); err != nil {
		t.Error(err)
	}
}

func counts(of map[string]int) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		list = append(list, fmt.Sprintf("%d %s", of[name], name))
	}
	return strings.Join(list, ", ")
}

func (t Tally) write(dir string) error {
	if dir == "" {
		return nil
	}
	data, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the tally: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, t.Layer+".json"), append(data, '\n'), 0o600); err != nil { //nolint:gosec // make names the directory
		return fmt.Errorf("writing the tally: %w", err)
	}
	return nil
}

// An Invariant is what must hold for each Run, whatever is killed.
type Invariant string

// The invariants, which are checked after every Run.
const (
	OneLivePod      Invariant = "I1"
	AttemptsOnce    Invariant = "I2"
	TerminalOnce    Invariant = "I3"
	NothingRepeated Invariant = "I4"
	Deadline        Invariant = "I5"
	Size            Invariant = "I6"
	NothingLeft     Invariant = "I7"
)

// Invariants are all invariants with their meaning, in order.
var Invariants = []struct {
	ID   Invariant
	Text string
}{
	{OneLivePod, "a Run has at most one live pod"},
	{AttemptsOnce, "no attempt number is used twice"},
	{TerminalOnce, "a Run ends exactly once, and its end never changes"},
	{NothingRepeated, "no committed step is lost or repeated, and no side effect happens twice: an effect of which only the intent is recorded is reported as interrupted"},
	{Deadline, "a Run ends before its deadline"},
	{Size, "a Run is smaller than 64 KiB"},
	{NothingLeft, "nothing is left of a deleted Run"},
}

// MaxRun is the most bytes of a stored Run.
const MaxRun = 64 << 10
