// Package offload stores large tool results in files. The model reads the path, the beginning and the end. Each result
// is handled once, before it is recorded, so that every later request has the same text. If a result cannot be stored,
// it is truncated and says so: it is never sent whole.
package offload
