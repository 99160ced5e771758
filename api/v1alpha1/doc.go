// Package v1alpha1 holds the kinds of Deckhand: Model, Agent, Run and Decision.
//
// A Model says how to reach a language model, an Agent who does the work and
// within which limits, a Run is one piece of work, a Decision is what a person
// says to one. Every field says its default, its effect and what status shows
// when it is wrong; conditions.go is the whole list of conditions and reasons.
//
// +kubebuilder:object:generate=true
// +groupName=deckhand.dev
package v1alpha1
