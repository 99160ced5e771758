// Package lint finds what the API server and the operator would refuse in manifests, without a
// cluster: bytes in, findings out.
//
// It runs the code that they run. The schemas and rules of the CRDs are evaluated by the
// packages of the API server, in its order: decode strictly, default, validate, evaluate rules
// and admission policies. Objects that pass are checked as the operator does for Ready, against
// the objects in the same files. What is not in the files is not known: it is a warning, and
// what depends on it is not checked.
//
// The API server says little about some mistakes, for example an unknown field. Hints say what
// to write: a similar name, what a field of another tool is called, or which text a comma cut.
package lint
