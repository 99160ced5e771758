package files

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/disk"
	"github.com/deckhand-dev/deckhand/runner/internal/cgrouptest"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

const (
	// runnerMemory is what the operator gives the container of a runner by default.
	runnerMemory = 256 << 20
	// raceFactor is how much more memory a program takes, at the least, that the
	// race detector watches.
	raceFactor = 3
	// atOnce is the most calls that an Agent may have run at once.
	atOnce = 32
	// largeFile is nearly the largest file that Grep and Edit take.
	largeFile = 9 << 20
	// edited is how many of them are edited at once: enough to exceed the memory.
	edited = 12
)

// workdirEnv names the workspace to the process that the test runs within a
// memory limit.
const workdirEnv = "DECKHAND_TEST_WORKDIR"

// As many calls as an Agent may make at once, over large files, stay within the
// memory that a runner has by default: the kernel kills a process that takes more.
func TestParallelCallsOverLargeFilesFitTheDefaultMemoryLimit(t *testing.T) {
	size := largeFile
	if testing.Short() {
		size /= 16 // the race detector watches the same calls, not the same bytes
	}
	lines := bytes.Repeat([]byte(strings.Repeat("x", 79)+"\n"), size/80)
	windows := append(bytes.Repeat([]byte(strings.Repeat("x ", 39)+"\r\n"), size/80), "last\r\n"...)
	cases := map[string]struct {
		call  string
		files int
		data  []byte
	}{
		"searches in lines":               {`Grep {"pattern":"needle","output_mode":"content"}`, 30, lines},
		"searches in one line":            {`Grep {"pattern":"needle"}`, 4, bytes.Repeat([]byte("x"), size)},
		"searches in one file":            {`Grep {"pattern":"needle","path":"f0"}`, 1, lines},
		"edits that find nothing":         {`Edit {"path":"f%d","old_string":"xx  xx","new_string":"x"}`, edited, windows},
		"edits":                           {`Edit {"path":"f%d","old_string":"last","new_string":"end","replace_all":true}`, edited, windows},
		"reads to the end of a long line": {`Read {"path":"f%d"}`, atOnce, bytes.Repeat([]byte("x"), size)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for i := range tc.files {
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d", i)), tc.data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			args := cgrouptest.New(t, cgrouptest.Limits{Memory: memoryOfTest()}).Join(os.Args[0], "-test.run=^TestCallAtOnce$", "-test.v")
			cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
			cmd.Env = append(os.Environ(), workdirEnv+"="+dir, "CALL="+tc.call, fmt.Sprintf("GOMEMLIMIT=%d", runnerMemory/100*80))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out[:min(len(out), 2000)])
			}
		})
	}
}

// TestCallAtOnce is what the test above runs within a memory limit.
func TestCallAtOnce(t *testing.T) {
	dir := os.Getenv(workdirEnv)
	if dir == "" {
		t.Skip("this is run by another test")
	}
	d, err := disk.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	b := bench{Toolset: Over(backend.New(d, noon), View{Root: "/workspace"}), t: t, dir: dir}
	name, args, _ := bytes.Cut([]byte(os.Getenv("CALL")), []byte(" "))
	var all sync.WaitGroup
	for i := range atOnce {
		all.Go(func() {
			args := bytes.ReplaceAll(args, []byte("%d"), []byte(strconv.Itoa(i)))
			if string(name) == NameEdit {
				b.Replay(NameRead, args) // as if it had been read
			}
			for _, one := range b.Tools() {
				if one.Name != string(name) {
					continue
				}
				if _, err := one.Call(t.Context(), tool.Call{Name: string(name), Args: json.RawMessage(args)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// memoryOfTest is the memory of a runner, or what a test built with the race
// detector needs to do in it as much.
func memoryOfTest() int64 {
	info, _ := debug.ReadBuildInfo()
	if slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		return raceFactor * runnerMemory
	}
	return runnerMemory
}
