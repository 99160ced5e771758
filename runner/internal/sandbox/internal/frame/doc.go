// Package frame is the protocol between the runner and the sandbox: frames of a kind
// and at most 64 KiB.
//
// Larger or structured data is a message: bounded JSON in several frames of one kind,
// the last of which is empty. A reader holds at most one frame or message in memory.
package frame
