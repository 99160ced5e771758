package task

// Sandbox is where commands of the agents run.
type Sandbox struct {
	// Image is its image, for messages.
	Image string `json:"image"`
	// Hosts are the hosts that commands may reach, exact or as *.suffix.
	Hosts []string `json:"hosts,omitempty"`
	// Required refuses to work unless all of the confinement is Enforced.
	Required bool `json:"required,omitempty"`
	// Processes is the most that one command may have at once.
	Processes int `json:"processes,omitempty"`
}

// Source is the initial content of a workspace, and how it is published.
type Source struct {
	Git *Git `json:"git,omitempty"`
	// Files are folders below the workspace, in the order of FilesDir.
	Files []string `json:"files,omitempty"`
}

// Git is a repository that a workspace begins with.
type Git struct {
	URL      string `json:"url"`
	Revision string `json:"revision,omitempty"`
	Depth    int    `json:"depth,omitempty"`
	// Secret names the Secret with its credentials; empty: none.
	Secret string `json:"secret,omitempty"`
	// Publish pushes the resulting files to the branch deckhand/<run>.
	Publish bool `json:"publish,omitempty"`
}
