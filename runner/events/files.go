package events

import "github.com/deckhand-dev/deckhand/runner/step"

// File is a part of a file that a Run without a volume made. The parts of a file follow one
// another, before the event files.
type File struct {
	// Path is relative to the workspace.
	Path string `json:"path"`
	// Size is the size of the whole file in bytes.
	Size int64 `json:"size"`
	// Offset is where in the file the part begins.
	Offset int64 `json:"offset"`
	// Data is the part in base64, at most 8190 bytes of the file. Secrets are replaced.
	Data []byte `json:"data"`
}

// Files lists the files that are in the log, and the files that are not.
type Files struct {
	// Files have path, size and sha256, the digest of the file as it is in the log.
	Files []LoggedFile `json:"files,omitempty"`
	// LeftOut are at most 20 files that are not in the log, with path, size and reason. Reasons
	// are TooLarge (the files have more than 1 MiB in all), TooMany (more than 64 files) and
	// NotFound (no file matches a pattern). Others are Pattern (a pattern is not valid),
	// Unreadable, Secret (a file that is not text has a secret) and Name (the name is not text
	// in one line).
	LeftOut []LeftOutFile `json:"leftOut,omitempty"`
	// More is how many others are not in the log.
	More int64 `json:"more,omitempty"`
}

// LoggedFile is a file that is in the log.
type LoggedFile struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
	// SHA256 is the digest of the file as it is in the log.
	SHA256 string `json:"sha256"`
}

// LeftOutFile is a file that is not in the log.
type LeftOutFile struct {
	// Path is the file, or a pattern of output.files that no file matches.
	Path string `json:"path"`
	Size int64  `json:"size,omitempty"`
	// Reason is one of the reasons that LeftOut lists.
	Reason string `json:"reason"`
}

// The reasons why a file is not in the log.
const (
	LeftOutTooLarge   = "TooLarge"
	LeftOutTooMany    = "TooMany"
	LeftOutNotFound   = "NotFound"
	LeftOutPattern    = "Pattern"
	LeftOutUnreadable = "Unreadable"
	LeftOutSecret     = "Secret"
	LeftOutName       = "Name"
)

// Bounds of the files in a log.
const (
	MaxLoggedBytes = 1 << 20
	MaxLoggedFiles = 64
	MaxLeftOut     = 20
	// FilePart is the maximum size of a part of a file in one event. It is a multiple of 3, so that the base64 of the
	// parts can be joined, and so small that container runtimes do not split the line (16 KiB).
	FilePart = 8190
)

// EventType names the event.
func (File) EventType() step.EventType { return step.EventFile }

// EventType names the event.
func (Files) EventType() step.EventType { return step.EventFiles }
