package task

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Version is the version of this contract. A runner refuses a Task of a newer
// version, and reports its own in Progress, so that an operator refuses a newer
// runner. Within a version fields are only added. An operator ignores unknown
// fields of Progress; a runner refuses unknown fields of a Task or a Snapshot.
const Version = 1

// SnapshotVersion is the version of a Snapshot. In version 1 the tools of built-ins had other names, which [ToolName]
// returns. An older runner refuses a Snapshot of version 2, whose rules it would not match with its tools.
const SnapshotVersion = 2

// Paths in a runner pod.
const (
	// Dir holds the task, one projected volume.
	Dir          = "/deckhand/task"
	TaskFile     = Dir + "/task.json"    // from the pod's annotation deckhand.dev/task
	SignalsFile  = Dir + "/signals.json" // from the pod's annotation deckhand.dev/signals; empty until there is a signal
	SnapshotFile = Dir + "/runner.json"  // from the ConfigMap of the Agent's revision

	// TokenDir holds the token of the runner, the CA of the cluster and the
	// namespace, under their usual names.
	TokenDir = "/deckhand/token"

	// SecretsDir holds one directory for each Secret that the Run may use, named
	// after it, with one file for each key of it.
	SecretsDir = "/deckhand/secrets"

	// SandboxDir is shared by the runner and the sandbox. It has the program of the sandbox, the socket at which that
	// program listens, and the socket of the runner's proxy. The container of each MCP server shares a directory with
	// the same content, below ServersDir.
	SandboxDir     = "/deckhand/sandbox"
	SandboxProgram = "bin/sandbox"
	SandboxSocket  = "run/exec.sock"
	ProxySocket    = "run/proxy.sock"
	ServersDir     = "/deckhand/servers"

	// FilesDir holds one directory for each ConfigMap of the initial workspace, named 0, 1 and so on, in the order of
	// Source.Files. CAFile has certificates that are trusted in addition to those of the system.
	FilesDir = "/deckhand/files"
	CAFile   = "/deckhand/ca/ca.crt"

	// SkillsDir has one folder for each skill, named after it. SkillFilesDir has one folder for each skill from a
	// ConfigMap, for the container that prepares the workspace.
	SkillsDir     = "/skills"
	SkillFilesDir = "/deckhand/skills"

	// Home is the home directory of commands.
	Home = "/home/agent"

	// StateDir has the journal, Workspace the files that the model works on. If several Runs share a workspace, each
	// has its own StateDir, and OriginDir has the initial content of the workspace for all of them.
	StateDir  = "/deckhand/state"
	OriginDir = "/deckhand/origin"
	Workspace = "/workspace"

	// SourceDir is the volume of the Run that is continued, read-only, for the container that prepares the workspace. It
	// has the folders state, workspace and home; if Runs share the workspace, StateFolder and origin.
	SourceDir = "/deckhand/source"

	// Further directories of the file tools, in the state directory: scratch files, evicted results and notes.
	Scratch  = "/tmp"
	Results  = "/results"
	Memories = "/memories"

	// EventsFolder, in the state directory of a Run with a volume, has its last events.
	EventsFolder = "events"

	// TerminationLog is the file of the termination message, see [Termination].
	TerminationLog = "/dev/termination-log"
)

// StateFolder returns the folder of a volume with the state directory of a Run that shares its workspace with others.
func StateFolder(runUID string) string { return "runs/" + runUID + "/state" }

// FetchMode is the argument with which a runner only prepares the workspace, and then ends.
const FetchMode = "fetch"

// FilesMode is the first argument of a runner that serves files of the workspace. Without another argument it waits, as
// the first process of a pod that reads the volume of a Run. With a path it writes the file or directory to standard
// output as a tar archive: kubectl deckhand cp executes it in such a pod, or in the pod of a running Run.
const FilesMode = "files"

// LivenessMode is the one argument of the liveness probe, which executes the
// program of the runner again: exit 1 when the runner does not respond.
const LivenessMode = "liveness"

// Names of the environment of a runner.
const (
	EnvPodUID = "DECKHAND_POD_UID"
	// EnvWorkspaceSize is workspace.size in bytes, for the container that fetches. Without it the size of fetched files
	// is not bounded.
	EnvWorkspaceSize = "DECKHAND_WORKSPACE_SIZE"
	// EnvNetworkCheck is the host and port of the operator with whose help a runner with a sandbox tests whether
	// NetworkPolicies are enforced. Without it the runner does not test that.
	EnvNetworkCheck = "DECKHAND_NETWORK_CHECK"
)

// Hash returns the name of a snapshot: the sha256 of its bytes, in hexadecimal.
func Hash(snapshot []byte) string {
	sum := sha256.Sum256(snapshot)
	return hex.EncodeToString(sum[:])
}

// Cut returns s as valid UTF-8 without NUL, and at most limit bytes of it: a longer text is cut at the boundary of a
// character and ends in an ellipsis.
func Cut(s string, limit int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "�"), "\x00", "")
	if len(s) <= limit {
		return s
	}
	const ellipsis = "…"
	end := max(limit-len(ellipsis), 0)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	if end == 0 {
		return ""
	}
	return s[:end] + ellipsis
}

// Middle shortens a text to limit bytes by replacing its middle with a note about the number of missing bytes, because
// the end of a text may be its most important part.
func Middle(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	gap := fmt.Sprintf(" […%d bytes left out…] ", len(s)-limit)
	room := max(limit-len(gap), 0)
	head, tail := room*2/3, room/3
	return strings.ToValidUTF8(s[:head], "") + gap + strings.ToValidUTF8(s[len(s)-tail:], "")
}
