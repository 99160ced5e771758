// Package request makes tools of the HTTP requests in a Toolset: a method, a path, parameters and a body, with ${{
// input.x }} for values of the arguments. A value is encoded for its place. In a path it is one segment or a part of
// one, in a query the value of one parameter, in a body a value of JSON. It can never become another segment, parameter
// or member, and expressions in it are not evaluated. Only the Toolset determines where a request is sent.
package request
