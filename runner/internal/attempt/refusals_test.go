package attempt

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func TestRefusalsAreCountedOnTopOfThoseOfEarlierAttempts(t *testing.T) {
	before := &task.Refused{Connections: 7, Hosts: []task.RefusedHost{{Host: "a.example", Port: 443, Reason: task.RefusedNotListed, Count: 5, FirstID: "s2c1"}}}
	var told []string
	r := newRefusals(before, func(message string, e events.HostRefused) {
		told = append(told, fmt.Sprintf("%s %d: %s", e.ID, e.Step, message))
	})
	if got := r.report(); got != before {
		t.Errorf("before any refusal: %+v", got)
	}
	r.beginStep("s9c1")
	r.add("a.example", "443", task.RefusedNotPublic)
	r.add("b.example", "80", task.RefusedNotListed)
	r.add("b.example", "80", task.RefusedNotListed)
	r.add("", "", task.RefusedNotListed)
	want := &task.Refused{Connections: 11, Hosts: []task.RefusedHost{
		{Host: "a.example", Port: 443, Reason: task.RefusedNotPublic, Count: 6, FirstID: "s2c1"},
		{Host: "b.example", Port: 80, Reason: task.RefusedNotListed, Count: 2, FirstID: "s9c1"},
	}}
	got := r.report()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report() -want +got:\n%s", diff)
	}
	r.add("b.example", "80", task.RefusedNotListed)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a report changed after it was taken, -want +got:\n%s", diff)
	}
	if before.Hosts[0].Count != 5 {
		t.Error("the task was changed")
	}
	wantTold := []string{
		"s9c1 9: A command was refused a connection to a.example:443: the name leads to no public address",
		"s9c1 9: A command was refused a connection to b.example:80: the host is not in sandbox.egress.hosts of the Agent",
	}
	if diff := cmp.Diff(wantTold, told); diff != "" {
		t.Errorf("events -want +got:\n%s", diff)
	}
}

// A command may try any number of names.
func TestRefusalsAreBounded(t *testing.T) {
	emitted := 0
	r := newRefusals(nil, func(string, events.HostRefused) { emitted++ })
	if r.report() != nil {
		t.Error("nothing refused is reported as something")
	}
	const tries = 5000
	for i := range tries {
		r.add(fmt.Sprintf("h%d.example", i), "443", task.RefusedNotListed)
	}
	got := r.report()
	if got.Connections != tries || len(got.Hosts) != task.MaxHosts || got.Hosts[0].Host != "h0.example" {
		t.Errorf("%d connections, %d hosts, the first %s", got.Connections, len(got.Hosts), got.Hosts[0].Host)
	}
	if emitted != maxAnnounced || len(r.announced) != maxAnnounced {
		t.Errorf("%d events, %d names kept", emitted, len(r.announced))
	}
}

func TestEveryReportSaysWhatWasRefused(t *testing.T) {
	to := &fakeReporter{}
	counted := newRefusals(nil, func(string, events.HostRefused) {})
	s := &statusReporter{to: to, refusals: counted}
	s.Report(func() task.Progress { return task.Progress{} })
	if to.last.Refused != nil {
		t.Errorf("before: %+v", to.last.Refused)
	}
	counted.beginStep("s3")
	counted.add("evil.example", "443", task.RefusedNotListed)
	s.Report(func() task.Progress { return task.Progress{} })
	want := &task.Refused{Connections: 1, Hosts: []task.RefusedHost{{Host: "evil.example", Port: 443, Reason: task.RefusedNotListed, Count: 1, FirstID: "s3"}}}
	if diff := cmp.Diff(want, to.last.Refused); diff != "" {
		t.Errorf("reported -want +got:\n%s", diff)
	}
}

func TestDeniedToolCallsAreCountedOnTopOfThoseOfEarlierAttempts(t *testing.T) {
	before := &task.Refused{ToolCalls: 3, Tools: []task.DeniedTool{{Name: "shell", By: task.DeniedByPolicy, Count: 3, FirstID: "s2c1"}}}
	r := newRefusals(before, func(string, events.HostRefused) {})
	r.deny("shell", task.DeniedByPolicy, "s7c1")
	r.deny("shell", task.DeniedByApprover, "s8c1")
	want := &task.Refused{ToolCalls: 5, Tools: []task.DeniedTool{
		{Name: "shell", By: task.DeniedByPolicy, Count: 4, FirstID: "s2c1"},
		{Name: "shell", By: task.DeniedByApprover, Count: 1, FirstID: "s8c1"},
	}}
	got := r.report()
	for i := range 2 * task.MaxDeniedTools {
		r.deny(fmt.Sprintf("tool%d", i)+strings.Repeat("x", 100), task.DeniedByHook, "s9c1")
	}
	if diff := cmp.Diff(want, got); diff != "" || before.Tools[0].Count != 3 {
		t.Errorf("report() -want +got:\n%s", diff)
	}
	if all := r.report(); len(all.Tools) != task.MaxDeniedTools || all.ToolCalls != 5+2*task.MaxDeniedTools || len(all.Tools[7].Name) > task.MaxTool {
		t.Errorf("report() is %+v", all)
	}
}
