// Package config makes a session of a task: the only package of the runner
// that knows all the others.
//
// Read checks what the operator sent, a Registry holds the drivers of models
// and the tools that an Agent may name, Build puts together what the engine
// needs. Whatever cannot work is found here, before anything begins, and said
// in terms of the user's own objects.
package config
