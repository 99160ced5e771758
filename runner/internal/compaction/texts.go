package compaction

// The texts that replace removed content. They are part of recorded sessions: if one changes,
// a resumed session no longer matches the provider's cache.
const (
	clearedText   = "(old result removed to make room; call again if it is needed)"
	summaryPrefix = "(The steps that were here are removed to make room. This is a summary of them, which you wrote yourself.)\n\n"
)

// SummaryPrompt asks the model, as the next user's message of a session, for
// the summary that will stand for it.
const SummaryPrompt = `The session is about to become too long. Everything between the first message and the last few steps will be removed and replaced by what you answer now. You, or another model, will go on from it and will know nothing else of what was removed. If there is an earlier summary, it is removed too: carry over what still matters.

Answer with the summary only, as text. Do not call a tool, do not go on with the work and do not address anyone.

Write under these headings, in short sentences, and leave out a heading that has nothing under it:

Goal: what was asked for, with every condition and preference that was named, in the words that were used where those matter.
Decisions: what was decided and why, also what was tried and given up, so that it is not tried again.
Done: what was done so far, each with the names of the files, commands, addresses and tools involved, and the result.
Open: what is left to do, in order, and exactly where the work stopped.
Facts: what has to be known to go on: paths, names, identifiers, numbers, formats, error messages, what people answered. Copy them exactly; a fact that is not here is lost.

Never write down a password, key or token.`
