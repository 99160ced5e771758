package proc

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
)

// A Process is one row of a Table.
type Process struct {
	ID        int
	Parent    int
	State     byte   // as in /proc: R, S, D, T, t, Z, X
	Memory    int64  // resident memory in bytes
	StartTime uint64 // in clock ticks after boot; tells it from another process that reuses its PID
}

// Ended reports whether it is a zombie.
func (p Process) Ended() bool { return p.State == 'Z' || p.State == 'X' }

// Stopped reports whether it is stopped by a signal or a tracer.
func (p Process) Stopped() bool { return p.State == 'T' || p.State == 't' }

// A Table is a snapshot of the processes, by parent. Processes that start or end
// while it is read may be missing.
type Table struct {
	children map[int][]Process
}

// sweeping is held by Sweep while all processes are stopped.
var sweeping sync.RWMutex

// ReadTable reads the process table, not during a Sweep.
func ReadTable() (Table, error) {
	sweeping.RLock()
	defer sweeping.RUnlock()
	return readTable()
}

func readTable() (Table, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return Table{}, fmt.Errorf("looking at the processes: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return Table{}, fmt.Errorf("looking at the processes: %w", err)
	}
	t := Table{children: make(map[int][]Process, len(names))}
	var line [1024]byte
	for _, name := range names {
		if p, ok := readEntry(name, line[:]); ok {
			t.children[p.Parent] = append(t.children[p.Parent], p)
		}
	}
	return t, nil
}

// readEntry reads the process of an entry of /proc, if the entry is one.
func readEntry(name string, line []byte) (Process, bool) {
	id, err := strconv.Atoi(name)
	if err != nil {
		return Process{}, false
	}
	return stat(id, line)
}

// stat reads the state of one process. It runs for all processes many times a second,
// so it avoids the overhead of os.File.
func stat(id int, line []byte) (Process, bool) {
	fd, err := syscall.Open("/proc/"+strconv.Itoa(id)+"/stat", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return Process{}, false
	}
	defer func() { _ = syscall.Close(fd) }() // it was only read
	n, err := syscall.Read(fd, line)
	if err != nil || n <= 0 {
		return Process{}, false
	}
	return parse(id, line[:n])
}

// Fields of /proc/ID/stat, counted from the one behind the name, which may
// contain anything.
const (
	fieldState     = 0
	fieldParent    = 1
	fieldStartTime = 19
	fieldRSS       = 21
)

func parse(id int, line []byte) (Process, bool) {
	end := bytes.LastIndexByte(line, ')')
	if end < 0 {
		return Process{}, false
	}
	fields := bytes.Fields(line[end+1:])
	if len(fields) <= fieldRSS {
		return Process{}, false
	}
	parent, err := strconv.Atoi(string(fields[fieldParent]))
	if err != nil {
		return Process{}, false
	}
	pages, err := strconv.ParseInt(string(fields[fieldRSS]), 10, 64)
	if err != nil {
		return Process{}, false
	}
	began, err := strconv.ParseUint(string(fields[fieldStartTime]), 10, 64)
	if err != nil {
		return Process{}, false
	}
	return Process{
		ID: id, Parent: parent, State: fields[fieldState][0], Memory: pages * int64(os.Getpagesize()), StartTime: began,
	}, true
}

// Children returns the children of a process.
func (t Table) Children(id int) []Process { return t.children[id] }

// Below returns the descendants of a process that are not zombies, except subtrees
// whose root spare accepts. A nil spare accepts none.
func (t Table) Below(id int, spare func(id int) bool) []Process {
	var all []Process
	for _, p := range t.children[id] {
		if p.ID == id || spare != nil && spare(p.ID) {
			continue
		}
		if !p.Ended() {
			all = append(all, p)
		}
		all = append(all, t.Below(p.ID, spare)...)
	}
	return all
}

// all returns all processes.
func (t Table) all() []Process {
	return slices.Concat(slices.Collect(maps.Values(t.children))...)
}

// stopped reports whether the table has a process and it was stopped.
func (t Table) stopped(p Process) bool {
	return slices.ContainsFunc(t.children[p.Parent], func(q Process) bool { return q.ID == p.ID && q.Stopped() })
}

// Descends reports whether a process is another one or descends from it. It is true
// for a process that does not exist any more, because that cannot be excluded.
func Descends(id, from int) bool {
	var line [1024]byte
	for range 1 << 16 { // deeper than any tree; ids may be reused while this looks
		if id == from {
			return true
		}
		if id <= 0 {
			return false
		}
		p, ok := stat(id, line[:])
		if !ok {
			return true
		}
		id = p.Parent
	}
	return true
}
