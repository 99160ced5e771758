// Package untrusted makes what a runner reported safe to read, to show and to sum.
//
// A runner runs what a model asks for; a compromised one writes
// anything that the schema of Run lets through. Code that reads status.progress or a
// termination message calls Progress or Termination first. What is data, such as the
// arguments of a call or the text of a result, is kept as it is: Line and Quote make
// it fit for a condition, an event or a log where it is shown, and Text for a terminal.
package untrusted
