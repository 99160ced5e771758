// Package frame is how the runner and the sandbox speak over their socket: in
// frames of a kind and at most 64 KiB.
//
// What is larger or has a structure is a message: JSON over several frames of
// one kind, the last of which is empty, bounded as a whole. A reader holds one
// frame or one message and nothing else, whatever the far end sends.
package frame
