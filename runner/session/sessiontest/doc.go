// Package sessiontest is the conformance suite of the port session.Store.
package sessiontest
