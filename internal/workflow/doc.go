// Package workflow validates a Workflow with the objects that it refers to, and compiles it for its Runs.
//
// From reads the objects that a Workflow refers to. Of returns its Revision: the spec with the revisions of its Agents
// and nested Workflows, immutable and named by its hash. It is stored in ConfigMaps, as revisions of Agents are, and
// Read reads it. Compile returns its Program: the graph of its nodes and their expressions, with types. The first
// error, in the order of the manifest, is a *snapshot.NotReadyError that names the node, the field and the column.
//
// The output of a node has the type of its Agent's output.schema, or of the output of its Workflow. It is optional if
// it may be absent: if the node has a condition or may fail, or if the reader is in finally. A node depends on the
// nodes that its expressions read.
//
// During a Run a Program evaluates expressions with Values: the results of the nodes. Only From and Read access the
// cluster.
package workflow
