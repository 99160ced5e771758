// Package repair is the layer that has a model mend the arguments of calls that
// do not fit their tools, before they are recorded: an Agent's route Repair.
//
// What small errors of writing there are is mended without a model, by the
// registry of the tools. What is left is shown to the other model together with
// the schema and what is wrong, once; if its answer does not fit either, the
// call stays as it was and its own model reads what is wrong with it.
package repair
