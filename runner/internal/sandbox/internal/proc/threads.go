package proc

import (
	"runtime"
	"sync"
)

// spareThreads is how many threads ReserveThreads creates. When a command has used
// up the process limit of the container, no thread can be created, and then the
// supervisor needs some to kill it.
const spareThreads = 6

// ReserveThreads creates threads in advance, which the Go runtime keeps.
func ReserveThreads() {
	var met, all sync.WaitGroup
	met.Add(spareThreads)
	for range spareThreads {
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			met.Done()
			met.Wait() // until each goroutine has a thread
		})
	}
	all.Wait()
}
