package proc

import (
	"runtime"
	"sync"
)

// spareThreads are how many threads are made in advance. When a command has
// used up what the container may have of processes, there are none to be had, and
// just then they are needed.
const spareThreads = 6

// ReserveThreads makes threads that are there when they are needed.
func ReserveThreads() {
	var met, all sync.WaitGroup
	met.Add(spareThreads)
	for range spareThreads {
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			met.Done()
			met.Wait() // until each has a thread of its own
		})
	}
	all.Wait()
}
