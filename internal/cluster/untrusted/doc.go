// Package untrusted makes the reports of a runner safe to read, to show and to sum. A runner executes the requests of a
// model, and a compromised one can write anything that the schema of Run accepts. Code that reads status.progress or a
// termination message calls Progress or Termination first. Data, such as the arguments of a call or the text of a
// result, stays unchanged there: Line and Quote prepare it for a condition, an event or a log, and Text for a terminal.
package untrusted
