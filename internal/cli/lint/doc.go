// Package lint finds what the API server and the operator would refuse in manifests, without a cluster: bytes in,
// findings out.
//
// It runs the same code. The packages of the API server evaluate the schemas and rules of the CRDs, in the order of the
// API server: decode strictly, default, validate, evaluate rules and admission policies. Objects that pass are checked
// as the operator does for Ready, against the objects in the same files. Objects that are missing in the files cause a
// warning, and checks that depend on them are skipped.
//
// The messages of the API server about some mistakes are short, for example about an unknown field. Hints add what to
// write: a similar name, the name for a field of another tool, or the text that a comma cut.
package lint
