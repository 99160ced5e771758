// Package modeltest holds what models are tested with, and what is tested with
// models.
//
// A Server plays a Script over the wires of chat completions, of Responses, of Messages and of
// Bedrock, in a test or in a pod: the same request always gets the same answer, so a run that was killed
// goes on where it was. It refuses what strict providers refuse, and fails on
// demand in the ways in which they fail.
//
// Run is the suite that every adapter must pass; RunSigned and RunUnsigned are
// the same over the wire of Messages.
package modeltest
