// Package control has the tools with which a model controls the session: think for itself, finish and reject for the
// loop, ask for users.
package control
