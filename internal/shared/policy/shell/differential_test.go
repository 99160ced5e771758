package shell_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/shared/policy/shell"
)

// Whatever the real bash runs of a command line, the policy sees, or the line is
// opaque. TestPolicySeesWhatBashRuns generates other lines in every run; a
// failure says the seed that generates them again. To search further:
//
//	go test -run '^$' -fuzz FuzzPolicySeesWhatBashRuns ./internal/shared/policy/shell
//	BASH_LINES=100000 BASH_SEED=7 go test -timeout 1h -run PolicySeesWhatBashRuns ./internal/shared/policy/shell
//
// A finding becomes a line of testdata/bash.txt.

// How many lines TestPolicySeesWhatBashRuns generates, and how many of them one
// bash runs.
const (
	generatedLines = 1000
	linesPerBash   = 100
)

func TestPolicySeesWhatBashRuns(t *testing.T) {
	bash := newRealBash(t)
	lines, seed := setting("BASH_LINES", generatedLines), setting("BASH_SEED", rand.IntN(1_000_000))
	t.Logf("Seed %d. To generate the same lines again: BASH_SEED=%d BASH_LINES=%d", seed, seed, lines)
	commands, open := 0, 0
	for from := 0; from < lines; from += linesPerBash {
		batch := make([]string, linesPerBash)
		for i := range batch {
			batch[i] = generate(rand.New(rand.NewPCG(uint64(seed), uint64(from+i))).IntN)
		}
		for i, argvs := range bash.run(t, batch...) {
			if !shell.Read(batch[i], shell.Bash).Opaque() {
				open++
				commands += len(argvs)
			}
			if unseen(batch[i], argvs) != "" {
				fail(t, bash, batch[i])
			}
		}
	}
	t.Logf("%d lines, %d of them not opaque, of which bash ran %d commands", lines, open, commands)
	if open < lines/5 || commands < open {
		t.Error("Most lines are opaque or run nothing: the test proves little. Adjust the grammar.")
	}
}

// setting is a number of the environment.
func setting(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// Each line of the corpus was once read differently by bash and by the policy.
func TestPolicySeesWhatBashRunsOfTheCorpus(t *testing.T) {
	bash := newRealBash(t)
	data, err := os.ReadFile("testdata/bash.txt")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for row := range strings.Lines(string(data)) {
		if row = strings.TrimSpace(row); row == "" || strings.HasPrefix(row, "#") {
			continue
		}
		line, err := strconv.Unquote(row)
		if err != nil {
			t.Fatalf("%s is not a quoted line: %v", row, err)
		}
		lines = append(lines, line)
	}
	for i, argvs := range bash.run(t, lines...) {
		if why := unseen(lines[i], argvs); why != "" {
			t.Errorf("%q: %s", lines[i], why)
		}
	}
}

// The bytes of the fuzzer are choices of the grammar, never a command line.
func FuzzPolicySeesWhatBashRuns(f *testing.F) {
	for seed := range byte(20) {
		f.Add([]byte{seed, 7 * seed, 31 * seed, 5, 2, 9})
	}
	bash := newRealBash(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		var rest [16]byte
		copy(rest[:], data)
		random := rand.New(rand.NewPCG(binary.BigEndian.Uint64(rest[:]), binary.BigEndian.Uint64(rest[8:])))
		line := generate(func(n int) int {
			if len(data) == 0 {
				return random.IntN(n)
			}
			choice := int(data[0]) % n
			data = data[1:]
			return choice
		})
		if unseen(line, bash.run(t, line)[0]) != "" {
			fail(t, bash, line)
		}
	})
}

// unseen says which command of a line bash ran without the policy seeing it. Of
// the words of a command, options and the first other word are compared: a later
// word that is only known when the line runs is not taken for every word.
func unseen(line string, argvs [][]string) string {
	read := shell.Read(line, shell.Bash)
	if read.Opaque() {
		return ""
	}
	for _, argv := range argvs {
		if argv[0] != "" && !read.Runs(argv[0], distinctive(argv[1:])...) {
			return fmt.Sprintf("bash ran %q", argv)
		}
	}
	return ""
}

// distinctive are the options and the first other word.
func distinctive(words []string) []string {
	var found []string
	first := true
	for _, w := range words {
		option := strings.HasPrefix(w, "-")
		if option || first && w != "" && !strings.HasPrefix(w, "/") { // a path is what bash made of ~
			found = append(found, w)
		}
		first = first && option
	}
	return found
}

// fail reports the shortest line that shows the same.
func fail(t *testing.T, bash *realBash, line string) {
	t.Helper()
	short := shrink(t, bash, line)
	t.Errorf("%s of %s, which the policy does not see and does not call opaque; shrunk from %s.\nAdd the line to testdata/bash.txt.",
		unseen(short, bash.run(t, short)[0]), strconv.Quote(short), strconv.Quote(line))
}

// shrink removes what a line does not need to fail.
func shrink(t *testing.T, bash *realBash, line string) string {
	t.Helper()
	for size := len(line) / 2; size > 0; {
		shorter, found := without(t, bash, line, size)
		if !found {
			size /= 2
			continue
		}
		line, size = shorter, max(1, min(size, len(shorter)/2))
	}
	return line
}

// without removes so many bytes somewhere.
func without(t *testing.T, bash *realBash, line string, size int) (string, bool) {
	t.Helper()
	for at := 0; at+size <= len(line); at++ {
		shorter := line[:at] + line[at+size:]
		if unseen(shorter, bash.run(t, shorter)[0]) != "" {
			return shorter, true
		}
	}
	return "", false
}
