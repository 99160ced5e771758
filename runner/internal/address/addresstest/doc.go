// Package addresstest resolves names for tests, without a network.
package addresstest
