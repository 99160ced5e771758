package operator

import "github.com/go-logr/logr"

// A manager that stops releases its lease last, and logs that as an error
// (sigs.k8s.io/controller-runtime/pkg/manager, engageStopProcedure). Of one that loses
// its lease otherwise Start returns an error with the same text.
const (
	stopping = "error received after stop sequence was engaged"
	released = "leader election lost"
)

// withoutLeaseError returns a logger that does not log a lease that was given up as an error.
func withoutLeaseError(l logr.Logger) logr.Logger {
	if l.GetSink() == nil {
		return l
	}
	return l.WithSink(leaseSink{l.GetSink()})
}

type leaseSink struct{ logr.LogSink }

func (s leaseSink) Error(err error, message string, keysAndValues ...any) {
	if message == stopping && err != nil && err.Error() == released {
		s.Info(0, "The lease was given up")
		return
	}
	s.LogSink.Error(err, message, keysAndValues...)
}

func (s leaseSink) WithValues(keysAndValues ...any) logr.LogSink {
	return leaseSink{s.LogSink.WithValues(keysAndValues...)}
}

func (s leaseSink) WithName(name string) logr.LogSink { return leaseSink{s.LogSink.WithName(name)} }
