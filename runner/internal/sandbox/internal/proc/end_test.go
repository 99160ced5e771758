//go:build linux

package proc

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A world is a fake process table that records signals.
type world struct {
	processes []Process
	reads     []error // of each read of the table; panics if one is errPanic
	sent      []sent
}

type sent struct {
	ID     int
	Signal syscall.Signal
}

var errPanic = errors.New("panic")

func (w *world) read() (Table, error) {
	if len(w.reads) > 0 {
		err := w.reads[0]
		w.reads = w.reads[1:]
		if errors.Is(err, errPanic) {
			panic("out of memory")
		}
		if err != nil {
			return Table{}, err
		}
	}
	t := Table{children: map[int][]Process{}}
	for _, p := range w.processes {
		t.children[p.Parent] = append(t.children[p.Parent], p)
	}
	return t, nil
}

func (w *world) send(id int, s syscall.Signal) { w.sent = append(w.sent, sent{id, s}) }

func TestASweepLetsSupervisorsContinueWhateverFails(t *testing.T) {
	const supervisor, command, paused, orphan = 2, 3, 4, 5
	after := func(reads ...error) *world {
		return &world{reads: reads, processes: []Process{
			{ID: 1},
			{ID: supervisor, Parent: 1, State: 'T'},
			{ID: command, Parent: supervisor, State: 'S'},
			{ID: paused, Parent: supervisor, State: 'T'},
			{ID: orphan, Parent: 1, State: 'S'},
		}}
	}
	stop, all := sent{-1, syscall.SIGSTOP}, sent{-1, syscall.SIGCONT}
	for name, tc := range map[string]struct {
		world *world
		want  []sent
		err   error
	}{
		"when it succeeds, and one that was stopped before stays stopped": {after(), []sent{
			{supervisor, syscall.SIGCONT}, {command, syscall.SIGCONT}, stop, {orphan, syscall.SIGCONT}, {orphan, syscall.SIGKILL},
		}, nil},
		"when the table cannot be read for want of descriptors": {after(nil, syscall.EMFILE), []sent{all, stop}, syscall.EMFILE},
		"when it cannot be read for want of memory":             {after(nil, syscall.ENOMEM), []sent{all, stop}, syscall.ENOMEM},
		"when it cannot be read before either":                  {after(syscall.EAGAIN), nil, syscall.EAGAIN},
		"when reading panics":                                   {after(nil, errPanic), []sent{all, stop}, errPanic},
	} {
		t.Run(name, func(t *testing.T) {
			err := func() (err error) {
				defer func() {
					if recover() != nil {
						err = errPanic
					}
				}()
				_, _, err = sweepOnce(tc.world.read, tc.world.send, target{1, func(id int) bool { return id == supervisor }})
				return err
			}()
			if !errors.Is(err, tc.err) {
				t.Errorf("%v, want %v", err, tc.err)
			}
			slices.SortFunc(tc.world.sent, func(a, b sent) int { return 100*(a.ID-b.ID) + int(b.Signal-a.Signal) })
			slices.SortFunc(tc.want, func(a, b sent) int { return 100*(a.ID-b.ID) + int(b.Signal-a.Signal) })
			if diff := cmp.Diff(tc.want, tc.world.sent); diff != "" {
				t.Errorf("signals -want +got:\n%s", diff)
			}
		})
	}
}

// A table that lacks processes because this one may open no more files would say that
// they are gone.
func TestATableThatCannotBeReadIsAnError(t *testing.T) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before) }()
	for name, free := range map[string]uint64{"none can be opened": 0, "only the directory can be opened": 1} {
		t.Run(name, func(t *testing.T) {
			next, err := os.Open("/proc")
			if err != nil {
				t.Fatal(err)
			}
			number := uint64(next.Fd())
			// The directory is closed before processes are read, so that another file takes
			// its place between the two.
			if free == 0 {
				defer next.Close()
				number++
			} else {
				next.Close()
			}
			limit := syscall.Rlimit{Cur: number, Max: before.Max}
			if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
				t.Fatal(err)
			}
			_, err = ReadTable()
			failed := End(os.Getpid(), nil, nil)
			if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
				t.Fatal(err)
			}
			if !errors.Is(err, syscall.EMFILE) || !errors.Is(failed, syscall.EMFILE) {
				t.Errorf("the table: %v; the end: %v", err, failed)
			}
		})
	}
}

func TestNewTable(t *testing.T) {
	self := os.Getpid()
	gone := 1 << 30 // no PID is as high
	for name, tc := range map[string]struct {
		later   map[int]Process
		err     error // of reading what is not there later
		want    string
		partial bool
		failed  error
	}{
		"a process whose parent ended is found below the next one":   {map[int]Process{7: {ID: 7, Parent: self}}, syscall.ESRCH, "7", false, nil},
		"a parent that started later is found with the process":      {map[int]Process{gone: {ID: gone, Parent: self}}, syscall.ESRCH, "n7", false, nil},
		"a process that ended as well is not there":                  {nil, syscall.ENOENT, "", false, nil},
		"a process whose parents keep ending makes it partial":       {map[int]Process{7: {ID: 7, Parent: gone}}, syscall.ESRCH, "", true, nil},
		"a process that cannot be read again for want of memory":     {nil, syscall.ENOMEM, "", false, syscall.ENOMEM},
		"a process that cannot be read again for want of open files": {nil, syscall.EMFILE, "", false, syscall.EMFILE},
	} {
		t.Run(name, func(t *testing.T) {
			all := map[int]Process{self: {ID: self}, 7: {ID: 7, Parent: gone}}
			table, err := newTable(all, func(id int) (Process, error) {
				if p, ok := tc.later[id]; ok {
					return p, nil
				}
				return Process{}, tc.err
			})
			if !errors.Is(err, tc.failed) {
				t.Fatalf("%v, want %v", err, tc.failed)
			}
			var got []string
			for _, p := range table.Below(self, nil) {
				if p.ID == gone {
					got = append(got, "n")
				} else {
					got = append(got, strconv.Itoa(p.ID))
				}
			}
			if strings.Join(got, "") != tc.want || table.partial != tc.partial {
				t.Errorf("%v, partial %v", got, table.partial)
			}
		})
	}
}
