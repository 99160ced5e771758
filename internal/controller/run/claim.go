package run

// claimName is the name of the claim that a Run's files and journal are on.
func claimName(run string) string { return run + "-workspace" }
