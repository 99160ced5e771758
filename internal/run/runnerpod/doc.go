// Package runnerpod builds the pod of an attempt of a Run, and reads what became of it.
//
// [New] is a function of its [Input]: the same Input makes the same Pod. pod.go has the pod,
// containers.go and servers.go its containers, volumes.go what they mount, task.go the task
// that its runner gets. NewVolumeClaim is the volume of a durable Run. [Changes] compares a
// pod with the one that was asked for; state.go and owner.go read pods of any age.
package runnerpod
