package controller_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/operator"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

func withLeaderElection(namespace string, lease operator.Lease) func(*operator.Options) {
	return func(o *operator.Options) { o.LeaderElection, o.Namespace, o.Lease = true, namespace, lease }
}

func TestAnotherOperatorTakesOverFromOneThatIsStopped(t *testing.T) {
	namespace := apitest.Get(t).Namespace(t)
	// It takes over because the lease is given up: it would not expire for an hour.
	lease := operator.Lease{Duration: time.Hour, RenewDeadline: time.Minute, RetryPeriod: 200 * time.Millisecond}
	first, second := newOperator(t, namespace, withLeaderElection(namespace, lease)), newOperator(t, namespace, withLeaderElection(namespace, lease))
	stopFirst := start(t, first)
	<-first.Elected()
	stopSecond := start(t, second)
	createRuns(t, namespace, 60)
	started(t, namespace, 10)
	if err := stopFirst(); err != nil {
		t.Errorf("stopping the first: %v", err)
	}
	started(t, namespace, 60)
	if err := stopSecond(); err != nil {
		t.Errorf("stopping the second: %v", err)
	}
	if many := checkOnePodPerRun(t, namespace); many != 60 {
		t.Errorf("%d Runs have a pod", many)
	}
}

// processEnv is set for the process that is killed: this test once more, as an operator.
const processEnv = "DECKHAND_TEST_VICTIM"

// A processConfig is how it reaches the API server.
type processConfig struct {
	Host, Namespace, Pod string
	Lease                operator.Lease
	TLS                  rest.TLSClientConfig
}

// crashLease is the shortest that client-go takes.
var crashLease = operator.Lease{Duration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond}

func TestAnotherOperatorTakesOverFromOneThatIsKilled(t *testing.T) {
	s := apitest.Get(t)
	namespace := s.Namespace(t)
	first := startOperatorProcess(t, processConfig{Namespace: namespace, Lease: crashLease})
	createRuns(t, namespace, 60)
	started(t, namespace, 10) // it leads
	second := newOperator(t, namespace, withLeaderElection(namespace, crashLease))
	stop := start(t, second)
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // it was killed
	// However far it was, it has not done these.
	addRuns(t, namespace, 60, 70)
	<-second.Elected()
	started(t, namespace, 70)
	recorded(t, namespace, 70)
	if err := stop(); err != nil {
		t.Errorf("stopping the second: %v", err)
	}
	checkOnePodPerRun(t, namespace)
}

// startOperatorProcess starts an operator as a process of its own.
func startOperatorProcess(t *testing.T, c processConfig) *exec.Cmd {
	t.Helper()
	return startProgram(t, os.Args[0], c)
}

// startProgram starts an operator as a process of a test binary of this package.
func startProgram(t *testing.T, program string, c processConfig) *exec.Cmd {
	t.Helper()
	s := apitest.Get(t)
	c.Host, c.TLS = s.Config.Host, s.Config.TLSClientConfig
	config, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	process := exec.CommandContext(t.Context(), program)
	process.Env = append(os.Environ(), processEnv+"="+string(config))
	process.Stderr = os.Stderr
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	return process
}

// A container that is restarted in its pod leads at once: the lease would not expire for
// an hour.
func TestAnOperatorThatStartsAgainInItsPodTakesItsLeaseBack(t *testing.T) {
	namespace := apitest.Get(t).Namespace(t)
	lease := operator.Lease{Duration: time.Hour, RenewDeadline: time.Minute, RetryPeriod: 200 * time.Millisecond}
	first := startOperatorProcess(t, processConfig{Namespace: namespace, Lease: lease, Pod: "deckhand-0"})
	createRuns(t, namespace, 20)
	started(t, namespace, 5) // it leads
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // it was killed
	second := newOperator(t, namespace, withLeaderElection(namespace, lease), func(o *operator.Options) { o.Pod = "deckhand-0" })
	stop := start(t, second)
	<-second.Elected()
	recorded(t, namespace, 20)
	if err := stop(); err != nil {
		t.Errorf("stopping it: %v", err)
	}
	checkOnePodPerRun(t, namespace)
}

// Without a lease both operators work all the time. Neither makes a second pod, nor takes
// back what the other wrote, and neither logs a conflict as an error.
func TestTwoOperatorsThatBothLeadMakeOnePodEach(t *testing.T) {
	s := apitest.Get(t)
	namespace := s.Namespace(t)
	s.CheckInvariants(t, namespace)
	book := &errorLog{}
	logs := func(o *operator.Options) { o.Log = book.logger() }
	stopFirst := start(t, newOperator(t, namespace, logs))
	stopSecond := start(t, newOperator(t, namespace, logs))
	createRuns(t, namespace, 60)
	recorded(t, namespace, 60)
	for n := range 60 {
		patchStatus(t, &v1alpha1.Run{}, namespace, fmt.Sprintf("x%d", n), `{"progress":{"version":1,"attempt":1,"sequence":1,"counts":{"steps":1,"modelCalls":1,"toolCalls":0,"errors":0},"usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2,"durationSeconds":1},"result":{"committed":true,"reason":"Finished"}}}`)
	}
	eventually(t, 60, "Runs have finished", func() int { return finishedRuns(t, namespace) })
	for _, stop := range []func() error{stopFirst, stopSecond} {
		if err := stop(); err != nil {
			t.Errorf("stopping it: %v", err)
		}
	}
	checkOnePodPerRun(t, namespace)
	for _, line := range book.lines() {
		t.Errorf("one of them logged %s", line)
	}
}

// A leader that is stopped by the kernel for longer than its lease, for example because
// its cluster node is out of memory, works on when it is woken, beside the next leader.
func TestAnOperatorThatIsFrozenLongerThanItsLeaseMakesNoSecondPod(t *testing.T) {
	namespace := apitest.Get(t).Namespace(t)
	first := startOperatorProcess(t, processConfig{Namespace: namespace, Lease: crashLease})
	createRuns(t, namespace, 60)
	started(t, namespace, 10) // it leads
	if err := first.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// However far it was, it has not done these.
	addRuns(t, namespace, 60, 70)
	second := newOperator(t, namespace, withLeaderElection(namespace, crashLease))
	stop := start(t, second)
	<-second.Elected()
	if err := first.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(); err == nil {
		t.Error("the frozen operator ended without an error, want that it lost its lease")
	}
	recorded(t, namespace, 70)
	if err := stop(); err != nil {
		t.Errorf("stopping the second: %v", err)
	}
	if many := checkOnePodPerRun(t, namespace); many != 70 {
		t.Errorf("%d Runs have a pod", many)
	}
}

// runOperatorProcess runs an operator until it is killed.
func runOperatorProcess(text string) error {
	var c processConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	o := operatorOptions(c.Namespace)
	withLeaderElection(c.Namespace, c.Lease)(&o)
	o.Pod = c.Pod
	ctx := context.Background()
	mgr, err := operator.New(ctx, &rest.Config{Host: c.Host, TLSClientConfig: c.TLS, QPS: -1}, o)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}
