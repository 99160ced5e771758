// Package report writes status.progress of a Run, and the termination message of
// the runner, from which the operator reads a result that was not written.
//
// A Writer uses net/http, because it sends only one kind of request and a client
// library would triple the size of the runner. Each write is a JSON Patch of the
// whole subtree, with a test that the Run still has this pod as its attempt:
//
//	[{"op":"test","path":"/status/attempt/podUID","value":"…"},
//	 {"op":"add","path":"/status/progress","value":{…}}]
//
// Before the runner begins, a patch with the same test and a wrong resource version
// asks whether the operator has recorded the pod. The API server evaluates the tests
// first, so HTTP 409 says that they hold.
//
// The runner of a first attempt (Options.First) begins without asking, because the operator
// records that attempt later. Its reports test that the Run has no attempt yet, and after a
// refusal that it is this pod. A second after the start one of them must have been accepted before
// the next model call, and before each effect in any case.
//
// Until the first request is accepted, every refusal is transient: the operator may
// not have recorded the pod or granted the permission yet. After that, the same
// refusals mean that another attempt has replaced this one.
package report
