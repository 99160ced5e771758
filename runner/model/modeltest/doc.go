// Package modeltest has test doubles of model providers, and the conformance suite of adapters. A Server plays a Script
// over the APIs of chat completions, Responses, Messages and Bedrock, in a test or in a pod. The same request always
// gets the same answer, so that an interrupted Run can continue. It refuses what strict providers refuse, and fails on
// demand in the ways of real providers. Run is the suite that every adapter must pass; RunSigned and RunUnsigned are
// the same over the Messages API.
package modeltest
