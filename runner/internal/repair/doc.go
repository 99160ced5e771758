// Package repair is a layer that has a model correct arguments that do not match the schema of their tools, before they
// are recorded: an Agent's route Repair. The toolbox corrects small errors of notation without a model. All other
// arguments are shown once to the other model, with the schema and the error. If its answer does not match either, the
// call is unchanged and the agent's own model reads the error.
package repair
