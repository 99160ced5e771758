package engine

import (
	"testing"
	"time"
)

func TestOnlyAReporterChangesTheReportedState(t *testing.T) {
	r := newRun(Config{Now: time.Now})
	defer r.endLifetime()
	r.status.setReportedState("Approval")
	r.progress()
	if got := r.status.reportedState(); got != "Approval" {
		t.Errorf("progress changed the reported state to %q", got)
	}
	r.takeProgress()
	if got := r.status.reportedState(); got != "" {
		t.Errorf("after a report the reported state is %q", got)
	}
}
