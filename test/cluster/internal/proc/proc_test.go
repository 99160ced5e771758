package proc

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestParseStat(t *testing.T) {
	rest := "S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4321 1000 10"
	cases := map[string]struct {
		stat    string
		started uint64
		wantErr bool
	}{
		"a plain name":                  {stat: "7 (etcd) " + rest, started: 4321},
		"a name that looks like fields": {stat: "7 (a) S 1 (b) 9) " + rest, started: 4321},
		"a line cut short":              {stat: "7 (etcd) S 1", wantErr: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, started, err := parseStat(tc.stat)
			if started != tc.started || (err != nil) != tc.wantErr {
				t.Errorf("parseStat() = %d, %v; want %d, an error: %v", started, err, tc.started, tc.wantErr)
			}
		})
	}
}

func TestAnotherProcessWithTheSameNumberIsNotMeant(t *testing.T) {
	self, err := Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	earlier, rebooted := self, self
	earlier.Started--
	rebooted.Boot = "another"
	for name, tc := range map[string]struct {
		who  Identity
		want bool
	}{
		"ourselves":                 {self, true},
		"an earlier process":        {earlier, false},
		"a process of another boot": {rebooted, false},
		"nobody":                    {Identity{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.who.Alive(); got != tc.want {
				t.Errorf("Alive() = %v, want %v", got, tc.want)
			}
			if tc.want {
				return
			}
			if err := tc.who.Kill(); err != nil { // were it carried out, the test would end here
				t.Errorf("Kill() = %v", err)
			}
		})
	}
}

func TestStartedProcessIsRecordedFoundAndKilled(t *testing.T) {
	dir := t.TempDir()
	args := []string{"sh", "-c", "echo started; exec sleep 61.5"}
	s := Spec{Args: args, Dir: dir, Log: filepath.Join(dir, "log"), PIDFile: filepath.Join(dir, "pid")}
	if err := Start(s); err != nil {
		t.Fatal(err)
	}
	r, err := Read(s.PIDFile)
	if err != nil || !r.Alive() || !slices.Equal(r.Args, args) {
		t.Fatalf("Read() = %+v, %v; want a living process with its arguments", r, err)
	}
	if err := KillAll(t.Context(), []Identity{r.Identity}); err != nil || r.Alive() {
		t.Errorf("KillAll() = %v, still alive: %v", err, r.Alive())
	}
}

func TestStartedProcessDoesNotKeepFilesOpen(t *testing.T) {
	var ends [2]int
	if err := syscall.Pipe(ends[:]); err != nil { // unlike os.Pipe, without close-on-exec
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := Spec{Args: []string{"sleep", "61.5"}, Dir: dir, Log: filepath.Join(dir, "log"), PIDFile: filepath.Join(dir, "pid")}
	if err := Start(s); err != nil {
		t.Fatal(err)
	}
	r, err := Read(s.PIDFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Close(ends[1]); err != nil {
		t.Fatal(err)
	}
	if n, err := syscall.Read(ends[0], make([]byte, 1)); n != 0 || err != nil { // the end, if nobody else can write
		t.Errorf("Read() = %d, %v", n, err)
	}
	if err := errors.Join(syscall.Close(ends[0]), KillAll(t.Context(), []Identity{r.Identity})); err != nil {
		t.Error(err)
	}
}

func TestNoFileRecordsNobody(t *testing.T) {
	if r, err := Read(filepath.Join(t.TempDir(), "none")); err != nil || r.Alive() {
		t.Errorf("Read() = %+v, %v", r, err)
	}
}

func TestFindMatchesWholeArguments(t *testing.T) {
	found, err := Find(func(args []string) bool { return slices.Equal(args, os.Args) })
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(found, func(i Identity) bool { return i.PID == os.Getpid() }) {
		t.Errorf("Find(%s) = %v, want this process among them", strings.Join(os.Args, " "), found)
	}
}
