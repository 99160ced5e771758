package pubsub_test

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/pubsub"
)

// drain closes a subscription and returns what was in its queue.
func drain[T any](s *pubsub.Subscription[T]) []T {
	s.Close()
	var all []T
	for v := range s.C() {
		all = append(all, v)
	}
	return all
}

func publish(b *pubsub.Bus[int], n int) {
	for i := range n {
		b.Publish(i + 1)
	}
}

func TestAReaderGetsWhatItWantsInOrder(t *testing.T) {
	b := pubsub.New[int]()
	b.Publish(-1) // nobody is there
	all := b.Subscribe(10, nil)
	even := b.Subscribe(10, func(v int) bool { return v%2 == 0 })
	publish(b, 6)
	late := b.Subscribe(10, nil)
	b.Publish(7)
	for _, tc := range []struct {
		name string
		s    *pubsub.Subscription[int]
		want []int
	}{
		{"all", all, []int{1, 2, 3, 4, 5, 6, 7}},
		{"even", even, []int{2, 4, 6}},
		{"late", late, []int{7}},
	} {
		if diff := cmp.Diff(tc.want, drain(tc.s)); diff != "" || tc.s.Dropped() != 0 {
			t.Errorf("%s: dropped %d, -want +got:\n%s", tc.name, tc.s.Dropped(), diff)
		}
	}
}

func TestAStuckReaderOnlyMissesItsOwn(t *testing.T) {
	b := pubsub.New[int]()
	stuck, choosy, wide := b.Subscribe(3, nil), b.Subscribe(1, func(v int) bool { return v == 5 }), b.Subscribe(100, nil)
	publish(b, 100) // would never return if it waited
	if got := stuck.Dropped(); got != 97 {
		t.Errorf("the stuck reader missed %d, want 97", got)
	}
	if got := choosy.Dropped(); got != 0 {
		t.Errorf("the choosy reader missed %d: what is not wanted is not missed", got)
	}
	if got := wide.Dropped(); got != 0 {
		t.Errorf("the reader that has room missed %d", got)
	}
	if diff := cmp.Diff([]int{1, 2, 3}, drain(stuck)); diff != "" {
		t.Errorf("the stuck reader -want +got:\n%s", diff)
	}
	if got := len(drain(wide)); got != 100 {
		t.Errorf("the reader that has room got %d of 100", got)
	}
}

func TestClosing(t *testing.T) {
	b := pubsub.New[int]()
	s, other := b.Subscribe(5, nil), b.Subscribe(5, nil)
	b.Publish(1)
	s.Close()
	s.Close()
	b.Publish(2)
	if diff := cmp.Diff([]int{1}, drain(s)); diff != "" {
		t.Errorf("after Close -want +got:\n%s", diff)
	}
	if s.Dropped() != 0 {
		t.Errorf("Dropped() = %d: what comes after Close is not missed", s.Dropped())
	}
	if diff := cmp.Diff([]int{1, 2}, drain(other)); diff != "" {
		t.Errorf("the other reader -want +got:\n%s", diff)
	}
}

func TestAPanicOfOneReaderLeavesTheBusWhole(t *testing.T) {
	b := pubsub.New[int]()
	broken := b.Subscribe(1, func(int) bool { panic("oh") })
	func() {
		defer func() { _ = recover() }()
		b.Publish(1)
	}()
	broken.Close() // would hang if the panic had left the bus locked
	s := b.Subscribe(1, nil)
	b.Publish(2)
	if diff := cmp.Diff([]int{2}, drain(s)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAReaderOfNoSizeHasRoomForOne(t *testing.T) {
	b := pubsub.New[int]()
	s := b.Subscribe(-1, nil)
	publish(b, 2)
	if got := drain(s); len(got) != 1 || s.Dropped() != 1 {
		t.Errorf("got %v, missed %d", got, s.Dropped())
	}
}

func TestAReaderIsWokenByTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := pubsub.New[int]().Subscribe(1, nil)
		done := make(chan struct{})
		go func() {
			for range s.C() {
			}
			close(done)
		}()
		synctest.Wait()
		s.Close()
		<-done // synctest fails the test when nothing can go on
	})
}

const publishers = 4

// A value is the n-th of one publisher.
type value struct{ from, n int }

// follow reads for a moment what is published, while somebody else closes.
func follow(t *testing.T, b *pubsub.Bus[value], random *rand.Rand) {
	var offered atomic.Int64
	s := b.Subscribe(1+random.IntN(4), func(value) bool { offered.Add(1); return true })
	moment := random.IntN(200)
	go func() {
		for range moment {
			runtime.Gosched()
		}
		s.Close()
	}()
	var got int64
	last := [publishers]int{-1, -1, -1, -1}
	for v := range s.C() {
		got++
		if v.n <= last[v.from] {
			t.Errorf("%d of publisher %d came after %d", v.n, v.from, last[v.from])
		}
		last[v.from] = v.n
	}
	if got+s.Dropped() > offered.Load() {
		t.Errorf("got %d and missed %d of %d", got, s.Dropped(), offered.Load())
	}
}

// Publishers, readers that come and go, and one that never reads: whatever
// happens in whatever order, what a reader got and what it missed add up, and
// what it got from one publisher is in order.
func TestEverythingAtOnce(t *testing.T) {
	const values, readers = 2000, 12
	b := pubsub.New[value]()
	stuck, whole := b.Subscribe(1, nil), b.Subscribe(publishers*values, nil)

	var work sync.WaitGroup
	for p := range publishers {
		work.Go(func() {
			for n := range values {
				b.Publish(value{p, n})
			}
		})
	}
	for seed := range uint64(readers) {
		work.Go(func() {
			random := rand.New(rand.NewPCG(seed, 1))
			for range 40 {
				follow(t, b, random)
			}
		})
	}
	work.Wait()

	if got := stuck.Dropped(); got != publishers*values-1 {
		t.Errorf("the stuck reader missed %d of %d", got, publishers*values)
	}
	var got [publishers][]int
	for _, v := range drain(whole) {
		got[v.from] = append(got[v.from], v.n)
	}
	for p := range publishers {
		if len(got[p]) != values || !slices.IsSorted(got[p]) {
			t.Errorf("the reader with room got %d of %d from publisher %d, sorted: %t", len(got[p]), values, p, slices.IsSorted(got[p]))
		}
	}
}

// One event to eight readers, each of whose queues is read now and then.
func BenchmarkPublish(b *testing.B) {
	type event struct {
		n    int64
		text string
		more [3]int
	}
	for _, name := range []string{"to 8 readers", "to 8 stuck readers"} {
		b.Run(name, func(b *testing.B) {
			events := pubsub.New[event]()
			queues := make([]*pubsub.Subscription[event], 8)
			for i := range queues {
				queues[i] = events.Subscribe(1024, nil)
			}
			read := name == "to 8 readers"
			b.ReportAllocs()
			n := int64(0)
			for b.Loop() {
				events.Publish(event{n: n, text: "step", more: [3]int{1, 2, 3}})
				if n++; n%1024 == 0 && read {
					b.StopTimer()
					empty(b, queues)
					b.StartTimer()
				}
			}
		})
	}
}

func empty[T any](b *testing.B, queues []*pubsub.Subscription[T]) {
	for _, q := range queues {
		for len(q.C()) > 0 {
			<-q.C()
		}
		if q.Dropped() > 0 {
			b.Fatal("a reader with room missed something")
		}
	}
}
