// Package model is the controller of Models: it says whether one is well
// formed, as far as its schema cannot. It asks no provider and reads no Secret.
package model
