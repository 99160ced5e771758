// Package request makes tools of requests to an HTTP API, as the author of a
// Toolset wrote them: a method, a path, parameters, a body, with ${{ input.x }}
// where a value of the arguments goes.
//
// A value is bound, not pasted. In a path it is one segment or a part of one,
// in a query the value of one parameter, in a body a value of JSON: whatever is
// in it, it cannot become another segment, parameter or member, nor is it read
// for placeholders again. Where a request goes, the Toolset alone says.
package request
