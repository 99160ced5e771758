// Package config builds a session from a task. It is the only package of the runner that imports all others. Read
// checks what the operator sent, a Registry holds the drivers of models and the tools that an Agent may name, and Build
// makes what the engine needs. Errors in settings are found here, before anything starts, and are described in terms of
// the user's objects.
package config
