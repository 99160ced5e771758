// Package v1alpha1 has the API types of Deckhand.
//
// A Model is a language model with its credentials, a Toolset a group of tools, an
// Agent a system prompt with a Model, tools and limits, and a Workflow a graph of
// Agents. A Run executes an Agent or a Workflow once, a Schedule creates Runs at fixed
// times, and a Decision is what a user decides for a Run. The comment of each field
// says what it is, its default, its effect, and what status shows if it is wrong.
// conditions.go has all conditions and reasons.
//
// +kubebuilder:object:generate=true
// +groupName=deckhand.dev
package v1alpha1
