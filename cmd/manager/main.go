// Command manager is the operator.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"go.uber.org/zap/zapcore"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/operator"
	"github.com/deckhand-dev/deckhand/internal/shared/gomemlimit"
)

// version is stamped by the build.
var version = "unknown"

func main() {
	fitMemory()
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o, err := options(args)
	if err != nil {
		return err
	}
	ctrl.SetLogger(o.Log)
	o.Log.Info("Deckhand", "version", version)
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}
	mgr, err := operator.New(ctx, cfg, o)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

var errConcurrency = errors.New("--concurrent-runs, --concurrent-workflow-runs and --concurrent-schedules must not be negative: write 0 for the default")

func options(args []string) (operator.Options, error) {
	var o operator.Options
	var namespaces, excluded, level string
	var supply supplyFlags
	var defaults defaultFlags
	f := flag.NewFlagSet("manager", flag.ContinueOnError)
	f.StringVar(&o.RunnerImage, "runner-image", "", "image of the runner (required)")
	f.StringVar(&o.RunnerPullPolicy, "runner-pull-policy", "IfNotPresent", "when to pull it: Always, IfNotPresent or Never")
	supply.register(f)
	defaults.register(f)
	f.StringVar(&namespaces, "watch-namespaces", "", "namespaces to watch, separated by commas; empty: all")
	f.StringVar(&excluded, "exclude-namespaces", "", "namespaces without the release's admission policies, separated by commas, in which no runner is started; empty: none")
	f.IntVar(&o.Concurrency.Runs, "concurrent-runs", 0, "how many Runs of Agents are reconciled at a time; 0: 16")
	f.IntVar(&o.Concurrency.WorkflowRuns, "concurrent-workflow-runs", 0, "how many Runs of Workflows are reconciled at a time; 0: 4")
	f.IntVar(&o.Concurrency.Schedules, "concurrent-schedules", 0, "how many Schedules are reconciled at a time; 0: 4")
	f.StringVar(&o.PolicyPrefix, "policy-prefix", "deckhand", "what the names of this release's admission policies begin with")
	f.BoolVar(&o.LeaderElection, "leader-elect", false, "work only while holding a lease, for several replicas")
	f.StringVar(&o.Namespace, "operator-namespace", os.Getenv("POD_NAMESPACE"), "namespace of that lease")
	f.StringVar(&o.Pod, "pod-name", os.Getenv("POD_NAME"), "name of the operator's pod; a process that is restarted in it does not wait for the lease of the one before")
	f.StringVar(&o.Prices.Path, "prices-file", "", "file with prices that override those of the catalog, read again when it changes; empty: none")
	f.StringVar(&o.Prices.Source, "prices-source", "", "what Models show as the source of these prices")
	f.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8080", "address of the metrics; 0: none")
	f.BoolVar(&o.MetricsAuthentication, "metrics-authentication", false, "serve metrics over HTTPS to clients that may get /metrics; needs the right to create tokenreviews and subjectaccessreviews")
	f.StringVar(&o.ProbeAddress, "health-probe-bind-address", ":8081", "address of the probes; 0: none")
	f.StringVar(&o.PprofAddress, "pprof-address", "", "address of net/http/pprof, which must be of the loopback interface, for example 127.0.0.1:6060; empty: none")
	f.StringVar(&level, "log-level", "info", "info or debug")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if err := supply.into(&o); err != nil {
		return o, err
	}
	if err := defaults.into(&o); err != nil {
		return o, err
	}
	if namespaces != "" {
		o.Namespaces = strings.Split(namespaces, ",")
	}
	if excluded != "" {
		o.ExcludedNamespaces = strings.Split(excluded, ",")
	}
	if c := o.Concurrency; min(c.Runs, c.WorkflowRuns, c.Schedules) < 0 {
		return o, errConcurrency
	}
	verbosity := zapcore.InfoLevel
	if level == "debug" {
		verbosity = zapcore.DebugLevel
	}
	o.Log = zap.New(zap.Level(verbosity))
	return o, nil
}

// A flagError names a flag of the operator and what to write.
type flagError string

func (e flagError) Error() string { return string(e) }

func flagErrorf(format string, args ...any) error { return flagError(fmt.Sprintf(format, args...)) }

// defaultFlags are the defaults of Runs and Agents.
type defaultFlags struct {
	ttl        time.Duration
	durability string
}

func (d *defaultFlags) register(f *flag.FlagSet) {
	f.DurationVar(&d.ttl, "default-run-ttl", 0, "after how long a finished Run without ttlSecondsAfterFinished is deleted, as 168h; 0: never")
	f.StringVar(&d.durability, "default-durability", string(v1alpha1.DurabilityPod), "durability of the workspace of Agents without one: Pod or Volume")
}

var errRunTTL = errors.New("--default-run-ttl must be 0 for never, or from 1s to 596523h: write 168h for a week")

// into sets the operator's options that the flags give, or returns which flag is invalid.
func (d *defaultFlags) into(o *operator.Options) error {
	if d.ttl != 0 && (d.ttl < time.Second || d.ttl > math.MaxInt32*time.Second) {
		return errRunTTL
	}
	o.DefaultTTL, o.DefaultDurability = d.ttl, v1alpha1.Durability(d.durability)
	if o.DefaultDurability != v1alpha1.DurabilityPod && o.DefaultDurability != v1alpha1.DurabilityVolume {
		return flagErrorf("--default-durability is %q: write Pod or Volume", d.durability)
	}
	return nil
}

// gcPercent is how much the heap may grow over what is alive. Nearly all of that is
// the cache, which stays: with 10,000 finished Runs and their pods the default of 100
// takes 25 MiB more, and no less CPU.
const gcPercent = 50

// fitMemory fits the garbage collector to the container and to what the operator
// keeps. The environment variables GOMEMLIMIT and GOGC take precedence.
func fitMemory() {
	gomemlimit.Fit()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
