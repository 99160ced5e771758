package engine

// What the loop says to the model. The texts are part of the session: a word
// changed here changes what a resumed session is compared with.
const (
	nudgeFinish = "You have not ended the work yet. Call the tool Finish with your result as its arguments; a text alone does not end it."
	nudgeSilent = "Your answer was empty. Go on with the work, or say what the result is."
	nudgeCut    = "Your answer was cut at the limit of its length and is not used. Give a shorter one, whole."
	// nudgeTextCall begins the notice about a call that was written as text, nudgeCallTool
	// completes it.
	nudgeTextCall = "Nothing was executed: your answer has a tool call as text."
	nudgeCallTool = " Call %s as a tool to execute it. If the text is your result, call the tool Finish with it."

	nudgeStuck = "You are repeating yourself: %s. Change your approach: review what you know, try another way, or say what blocks you."

	noteLowSpace  = "The disk is full. Delete what is not needed; when it is full again, the work ends."
	noteAttempt   = "The attempt before this one ended: %s. This is attempt %d; the work continues from here. Look at what is already done before you do it again."
	noteLost      = "The processes that ran beside this session have ended: the runner or its pod was replaced.\n%s\n%s Start again what you still need."
	noteFiles     = "Files are as they were left."
	noteLostFiles = "What was written below %s before was lost. Other files are as they were left."
	noteFresh     = "The attempt before this one ended: %s. This is attempt %d and begins from the start."

	resultDeep     = "Agents may call each other only %d deep (limits.depth). Do this part of the work yourself."
	resultNoAgents = "This agent may call no other."
)

// What people are told of an end.
const (
	endStuck       = "The agent repeated itself, also after a notice: %s (%s, %d times). Change its instructions or tools, or use another Model"
	endContextFull = "%s; %d compactions in a row were not enough: give the Run less to read, shorten the instructions and tools, or use a Model with a larger window"
	endOverflow    = "%s; nothing more can be hidden: give the Run less to read, shorten the instructions and tools, or use a Model with a larger window"
)

// What stands in the session where nothing better is known.
const noSummary = "(The model gave no summary of the steps before this one. Look at what is there before you go on.)"

// What a nudge is about, as people are told.
const (
	invalidFinish   = "it answered in text and did not call Finish; simplify output.schema, or use a stronger Model"
	invalidSilent   = "its answer was empty; change the instructions or the prompt, or use a stronger Model"
	invalidCut      = "its answer was cut at the limit of its length; raise %s"
	invalidTextCall = "it wrote a call of %s as text, also after a notice that nothing was executed; have the model server parse tool calls (vLLM: --enable-auto-tool-choice and the --tool-call-parser of the model), or use a Model that supports tools"
)

// States of the Run in events, beside those in its status.
const (
	stateWorking = "Working" // it goes on
	stateClosing = "Closing" // something failed that only stands around the work
)
