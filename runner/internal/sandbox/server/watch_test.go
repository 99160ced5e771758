//go:build linux

package server

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/proc"
)

func TestTooMany(t *testing.T) {
	type use struct{ bound, processes, threads int }
	for name, tc := range map[string]struct {
		cpus int
		uses []use
		want []string
	}{
		"nothing runs":                              {2, nil, nil},
		"few of each":                               {2, []use{{64, 64, 64}, {64, 3, 30}}, nil},
		"a process too many of one":                 {2, []use{{64, 3, 30}, {64, 65, 65}}, []string{"1"}},
		"as many threads as a command may have":     {2, []use{{256, 256, 2048}}, nil},
		"a thread too many of one":                  {2, []use{{256, 1, 2049}, {256, 1, 1}}, []string{"0"}},
		"a small bound of processes, for a runtime": {2, []use{{8, 8, 512}}, nil},
		"more threads than that":                    {2, []use{{8, 8, 513}}, []string{"0"}},
		"compilers for each of many CPUs":           {64, []use{{256, 70, 4096}}, nil},
		"more threads than even these have":         {64, []use{{256, 70, 4097}}, []string{"0"}},
		"too many processes of all":                 {2, []use{{1000, 1000, 1000}, {1001, 1001, 1001}, {64, 48, 500}}, []string{"1"}},
		"the same, beside one with more threads":    {2, []use{{1000, 1000, 1000}, {1001, 1001, 1001}, {512, 48, 4000}}, []string{"1"}},
		"as many of all as there may be":            {2, []use{{1000, 1000, 1000}, {1001, 1000, 1000}, {64, 48, 48}}, nil},
		"too many processes, but not of the rest":   {2, []use{{64, 1900, 1900}, {1000, 1000, 1000}}, []string{"0"}},
		"too many threads of all":                   {2, []use{{2048, 1, 9000}, {2048, 10, 7385}}, []string{"0"}},
		"too many threads, but not of the rest":     {2, []use{{2048, 1, 16000}, {64, 1, 600}}, []string{"1"}},
		"one that may have more than all":           {2, []use{{3000, 3000, 24000}}, nil},
		"one without a limit of its own":            {2, []use{{0, 3000, 3000}}, []string{"0"}},
	} {
		t.Run(name, func(t *testing.T) {
			var all []load
			for n, u := range tc.uses {
				all = append(all, load{
					command: &command{Killed: sandbox.Killed{ID: string(rune('0' + n))}, processes: u.bound},
					Count:   proc.Count{Processes: u.processes, Threads: u.threads},
				})
			}
			var got []string
			for _, c := range tooMany(all, tc.cpus) {
				got = append(got, c.ID)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
