// Package responses calls models over OpenAI's Responses API. Package openai chooses it.
//
// Nothing is stored at the provider (store is false, and no request names an earlier response): the session is sent
// whole, with the unchanged items of earlier answers. The provider refuses items that it could have in its store, and
// items out of their order:
//
//   - no item has an id. A reasoning item is its encrypted content and its summary;
//   - a reasoning item is never sent without the item that followed it;
//   - the phase of a message stays with it;
//   - a call has the id that the provider gave it, unless another Model made it.
//
// Data of an item without a field in package step is the Part.Provider of its part (partData, and for reasoning the
// item itself). Items of tools that the provider runs by itself are not sent back, nor is the reasoning that led to
// them.
//
// The types of go-openai lose the encrypted content of reasoning and the phase of messages, so this package has its own
// types for requests and answers.
package responses
