package soak

// An Invariant is what must hold for each Run, whatever is killed.
type Invariant string

// The invariants, which are checked after every Run.
const (
	OneLivePod      Invariant = "I1"
	AttemptsOnce    Invariant = "I2"
	TerminalOnce    Invariant = "I3"
	NothingRepeated Invariant = "I4"
	Deadline        Invariant = "I5"
	Size            Invariant = "I6"
	NothingLeft     Invariant = "I7"
)

// Invariants are all invariants with their meaning, in order.
var Invariants = []struct {
	ID   Invariant
	Text string
}{
	{OneLivePod, "a Run has at most one live pod"},
	{AttemptsOnce, "no attempt number is used twice"},
	{TerminalOnce, "a Run ends exactly once, and its end never changes"},
	{NothingRepeated, "no committed step is lost or repeated, and no side effect happens twice: an effect of which only the intent is recorded is reported as interrupted"},
	{Deadline, "a Run ends before its deadline"},
	{Size, "a Run is smaller than 64 KiB"},
	{NothingLeft, "nothing is left of a deleted Run"},
}

// MaxRun is the most bytes of a stored Run.
const MaxRun = 64 << 10
