// Package attachment keeps the images and documents that a model is shown, and determines their types. Format and size
// in pixels are read from the first bytes of a file. Nothing is decoded: a small file that decompresses to gigabytes
// counts as an image with large dimensions, and malformed data does not reach a decoder in the process that holds the
// keys.
package attachment
