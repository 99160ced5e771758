// Package workflow checks a Workflow with all that it names, and makes of it what
// its Runs run.
//
// From reads what a Workflow may reach and Of makes its Version: the spec with the
// versions of its Agents and of the Workflows in it, frozen and named by their
// hash. It is stored in ConfigMaps as versions of Agents are, and Read reads it
// back. Compile makes its Program: the graph of its nodes and their expressions,
// with types. What is wrong is a *snapshot.NotReadyError that names the node, the
// field and the column; the first is told, in the order in which things are
// written.
//
// A node's output has the type of its Agent's output.schema, or of the output of
// its Workflow. It is optional for whoever reads it where it may not be there:
// the node has a condition, or may fail, or the reader is in finally. A node waits
// for those that its expressions read, so nothing need be said twice.
//
// At run time a Program is asked with Values: what the nodes came to. Whoever asks
// knows the cluster; this package does not, but for From and Read.
package workflow
