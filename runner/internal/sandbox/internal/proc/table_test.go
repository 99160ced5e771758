package proc

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	const rest = " 7 9 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 4 0 1234 1000000 10 184467"
	page := int64(os.Getpagesize())
	for name, tc := range map[string]struct {
		line string
		want Process
		ok   bool
	}{
		"a process":                          {"3 (sh) S" + rest, Process{ID: 3, Parent: 7, State: 'S', Threads: 4, Memory: 10 * page, StartTime: 1234}, true},
		"a name that looks like the rest":    {"3 (a) R 1 (b)) Z" + rest, Process{ID: 3, Parent: 7, State: 'Z', Threads: 4, Memory: 10 * page, StartTime: 1234}, true},
		"a line that is cut":                 {"3 (sh) S 7 9", Process{}, false},
		"a line without a name":              {"3 sh S" + rest, Process{}, false},
		"a number of threads that is none":   {"3 (sh) S" + strings.Replace(rest, " 4 0 1234", " x 0 1234", 1), Process{}, false},
		"a parent that is none":              {"3 (sh) S x" + rest[2:], Process{}, false},
		"nothing, as of one that just ended": {"", Process{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := parse(3, []byte(tc.line))
			if diff := cmp.Diff(tc.want, got); diff != "" || ok != tc.ok {
				t.Errorf("%v, -want +got:\n%s", ok, diff)
			}
		})
	}
}

func TestBelow(t *testing.T) {
	table := Table{children: map[int][]Process{
		1: {{ID: 2, Parent: 1}, {ID: 3, Parent: 1, State: 'Z'}, {ID: 9, Parent: 1}},
		2: {{ID: 4, Parent: 2}},
		3: {{ID: 5, Parent: 3}},
		4: {{ID: 6, Parent: 4}},
	}}
	for name, tc := range map[string]struct {
		from  int
		spare func(int) bool
		want  []int
	}{
		"everything but what has ended":    {1, nil, []int{2, 4, 5, 6, 9}},
		"without one and what is below it": {1, func(id int) bool { return id == 2 }, []int{5, 9}},
		"below one":                        {4, nil, []int{6}},
		"below nobody":                     {6, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []int
			for _, p := range table.Below(tc.from, tc.spare) {
				got = append(got, p.ID)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A process whose first thread has exited has the state of one that has ended.
func TestEnded(t *testing.T) {
	for name, tc := range map[string]struct {
		process Process
		want    bool
	}{
		"one that runs":                       {Process{State: 'R', Threads: 1}, false},
		"one that waits to be waited for":     {Process{State: 'Z', Threads: 1}, true},
		"one that is being removed":           {Process{State: 'X'}, true},
		"one whose other threads go on":       {Process{State: 'Z', Threads: 2}, false},
		"one of many threads that is stopped": {Process{State: 'T', Threads: 9}, false},
	} {
		if got := tc.process.Ended(); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestCount(t *testing.T) {
	table := Table{children: map[int][]Process{
		1: {{ID: 1, Parent: 1, Threads: 9}, {ID: 2, Parent: 1, Threads: 3}, {ID: 3, Parent: 1, State: 'Z', Threads: 1}, {ID: 4, Parent: 1, State: 'Z', Threads: 7}},
		2: {{ID: 5, Parent: 2, State: 'Z', Threads: 0}, {ID: 6, Parent: 2, Threads: 2}},
		3: {{ID: 7, Parent: 3, Threads: 1}},
	}}
	for id, want := range map[int]Count{
		1: {Processes: 5, Threads: 3 + 7 + 1 + 2 + 1},
		2: {Processes: 1, Threads: 2}, // it waits for its own
		5: {},
	} {
		if diff := cmp.Diff(want, table.Count(id)); diff != "" {
			t.Errorf("below %d, -want +got:\n%s", id, diff)
		}
	}
}

func TestDescends(t *testing.T) {
	for name, tc := range map[string]struct {
		id, from int
		want     bool
	}{
		"a process from itself":     {os.Getpid(), os.Getpid(), true},
		"this one from its parent":  {os.Getpid(), os.Getppid(), true},
		"its parent from this one":  {os.Getppid(), os.Getpid(), false},
		"one that is not there":     {1 << 30, os.Getpid(), true},
		"the first one from others": {1, os.Getpid(), false},
	} {
		if got := Descends(tc.id, tc.from); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
