// Package runnerpod builds the pod of an attempt of a Run, and reads its state.
//
// [New] is a function of its [Input]: the same Input makes the same Pod. pod.go has the pod,
// containers.go and servers.go its containers, volumes.go what they mount, task.go the task that its runner gets.
// NewVolumeClaim returns the volume of a durable Run. [Changes] compares a stored pod with the requested one; other
// functions read pods of any version.
package runnerpod
