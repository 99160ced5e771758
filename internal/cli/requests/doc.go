// Package requests shows what a Run asks a user, and reads the values that the user types.
package requests
