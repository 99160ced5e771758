// Package proc starts programs that outlive their parent and recognizes them
// afterwards.
//
// A process ID alone does not identify a process, because the kernel uses the number again after the process has ended.
// A record therefore has the number, the time at which the kernel started the process, and the ID of the boot. Only a
// process that matches all three is ever signaled.
package proc
