// Package requests shows the requests of a Run to a user, and reads the values that the user types.
package requests
