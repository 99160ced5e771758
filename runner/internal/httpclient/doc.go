// Package httpclient makes the HTTP clients of the runner, so that all have the same bounds.
package httpclient
