// Package model is the controller of Models: it says whether one is well
// formed, as far as its schema cannot, and whether its fallbacks are there and
// in no circle. It asks no provider and reads no Secret.
package model
