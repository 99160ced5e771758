// Package attachment keeps the images and documents that a model is shown, and says what they
// are.
//
// The format and the size in pixels are read from the first bytes of a file. Nothing is decoded:
// a small file that unpacks to gigabytes is one with a large header, and malformed data meets no
// decoder in the process that holds the keys.
package attachment
