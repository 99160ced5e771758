package run

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

func TestUnrecordedAttemptsAreRememberedWithinABound(t *testing.T) {
	u := newUnrecorded()
	run := func(n int) *v1alpha1.Run {
		return &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: fmt.Sprint("x", n), UID: types.UID(fmt.Sprint("uid-", n))}}
	}
	for n := range maxUnrecorded + 10 {
		u.remember(run(n), v1alpha1.Attempt{Number: 1, Pod: run(n).Name + "-1"})
		if a := u.get(run(n).UID); a == nil || a.Pod != run(n).Name+"-1" {
			t.Fatalf("the attempt of Run %d is %+v", n, a)
		}
	}
	if n := len(u.attempts); n != maxUnrecorded {
		t.Errorf("%d attempts are remembered, want %d", n, maxUnrecorded)
	}
}

func TestWhatIsNotRecordedWhenTheOperatorStops(t *testing.T) {
	u := newUnrecorded()
	for _, name := range []string{"x", "y"} {
		u.remember(&v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, UID: types.UID(name)}}, v1alpha1.Attempt{Number: 1})
	}
	u.forget("y")
	if u.isStopping() {
		t.Error("the operator stops")
	}
	if got, want := u.stop(), []client.ObjectKey{{Namespace: "team-a", Name: "x"}}; !slices.Equal(got, want) || !u.isStopping() {
		t.Errorf("stop() = %v, want %v", got, want)
	}
}
