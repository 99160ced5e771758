// Package offload puts large tool results aside: the whole of one goes to a file,
// and the model reads where it is and how it begins and ends.
//
// What is put aside is decided once, when the result comes and before it is
// recorded, so that every later request says the same. A result that cannot be
// put aside is cut, and says so: it is never sent whole.
package offload
