//go:build bench

package bench

import (
	"fmt"
	"syscall"
	"time"
)

// A span is what was used between two readings of the metrics.
type span struct {
	of               *scale
	operator, server [2]metrics
	own              [2]time.Duration // CPU of this process: load, simulated node and tally
}

func (s *scale) begin() *span {
	s.t.Helper()
	p := &span{of: s}
	p.read(0)
	return p
}

func (p *span) end() {
	p.of.t.Helper()
	p.read(1)
	if p.operator[0].sum(startTime) != p.operator[1].sum(startTime) {
		p.of.t.Error("the operator was restarted while it was measured")
	}
}

const startTime = "process_start_time_seconds"

func (p *span) read(i int) {
	p.of.t.Helper()
	p.operator[i], p.server[i] = p.of.operatorMetrics(), p.of.serverMetrics()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		p.of.t.Fatal(err)
	}
	p.own[i] = time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// rose is by how much a metric of the operator rose.
func (p *span) rose(name string, labels ...string) float64 {
	return p.operator[1].sum(name, labels...) - p.operator[0].sum(name, labels...)
}

const cpuSeconds = "process_cpu_seconds_total"

// operatorCPU, serverCPU and ownCPU are milliseconds for each of n.
func (p *span) operatorCPU(n int) float64 { return p.rose(cpuSeconds) * 1000 / float64(n) }

func (p *span) serverCPU(n int) float64 {
	return (p.server[1].sum(cpuSeconds) - p.server[0].sum(cpuSeconds)) * 1000 / float64(n)
}

func (p *span) ownCPU(n int) float64 { return ms(p.own[1]-p.own[0]) / float64(n) }

// writes are the operator's, but for its lease.
func (p *span) writes(n int) float64 {
	var sum float64
	for _, method := range []string{"POST", "PATCH", "DELETE"} {
		sum += p.rose("rest_client_requests_total", "method", method)
	}
	return sum / float64(n)
}

func (p *span) reconciles(n int) float64 {
	return p.rose("controller_runtime_reconcile_total") / float64(n)
}

// describe is what else a reader wants to know.
func (p *span) describe(n int) string {
	per := func(v float64) float64 { return v / float64(n) }
	return fmt.Sprintf("CPU ms operator %.1f, API server %.1f, load and node %.1f; writes POST %.2f PATCH %.2f DELETE %.2f, refused 409 %.2f 422 %.2f 404 %.2f, reads %.2f; reconciles run %.2f, workflowrun %.2f, schedule %.2f, other %.2f, with errors %.2f",
		p.operatorCPU(n), p.serverCPU(n), p.ownCPU(n),
		per(p.rose("rest_client_requests_total", "method", "POST")), per(p.rose("rest_client_requests_total", "method", "PATCH")), per(p.rose("rest_client_requests_total", "method", "DELETE")),
		per(p.rose("rest_client_requests_total", "code", "409")), per(p.rose("rest_client_requests_total", "code", "422")), per(p.rose("rest_client_requests_total", "code", "404")),
		per(p.rose("rest_client_requests_total", "method", "GET")),
		per(p.rose(reconciles, "controller", "run")), per(p.rose(reconciles, "controller", "workflowrun")), per(p.rose(reconciles, "controller", "schedule")),
		per(p.rose(reconciles)-p.rose(reconciles, "controller", "run")-p.rose(reconciles, "controller", "workflowrun")-p.rose(reconciles, "controller", "schedule")),
		per(p.rose(reconciles, "result", "error")))
}

const reconciles = "controller_runtime_reconcile_total"
