// Package report writes a Run's status.progress, and the termination message
// of the runner, which is the second channel of a result.
//
// A Writer speaks to the API server over plain HTTP, because that is one
// request of one kind and a client library would triple the size of the
// runner. Each write is a JSON Patch of the whole subtree behind a test that
// the Run still has this pod as its attempt:
//
//	[{"op":"test","path":"/status/attempt/podUID","value":"…"},
//	 {"op":"add","path":"/status/progress","value":{…}}]
//
// Until the first write is accepted, every refusal is one that may pass: the
// operator has not recorded the pod yet, or the right to write is not there
// yet. After it, the same refusals say that another attempt has taken over.
package report
