package terminal

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// Plural returns a number with a noun in the singular or plural, for example 2 Runs.
func Plural[N int | int32 | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Took returns the time between two times, in seconds. Clocks may differ.
func Took(begin, end time.Time) string {
	return cmp.Or(task.Duration(int64(end.Sub(begin)/time.Second)), "0s")
}

// Since returns the time from then to now in the form of kubectl.
func (s *Streams) Since(then metav1.Time) string {
	if then.IsZero() {
		return ""
	}
	return duration.HumanDuration(s.Now().Sub(then.Time))
}

// TimeOf returns a time that may be missing.
func TimeOf(t *metav1.Time) metav1.Time {
	if t == nil {
		return metav1.Time{}
	}
	return *t
}
