// Package proc starts programs that outlive their parent and recognizes them
// afterwards.
//
// A process id alone says little: the process may be gone and its number given
// to another. What is written down is therefore the number, the moment the
// kernel started it, and the boot that moment belongs to. Only a process that
// agrees in all three is ever signaled.
package proc
