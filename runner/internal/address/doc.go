// Package address judges where a connection may lead, by the address that it is
// about to be made to.
package address
