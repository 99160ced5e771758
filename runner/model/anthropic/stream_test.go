package anthropic_test

import "fmt"

// event is an event of a stream.
func event(kind, fields string) string {
	if fields != "" {
		fields = "," + fields
	}
	return fmt.Sprintf("event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, fields)
}

// begin is how a stream begins.
const begin = `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"stop_reason":null,"usage":{"input_tokens":10,"output_tokens":1}}}

event: ping
data: {"type": "ping"}

`

// end is how a stream ends, for a reason.
func end(reason string) string { return finish(reason) + event("message_stop", "") }

// finish is the end without its mark.
func finish(reason string) string {
	return event("message_delta", fmt.Sprintf(`"delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":5}`, reason))
}

func blockStart(index int, block string) string {
	return event("content_block_start", fmt.Sprintf(`"index":%d,"content_block":%s`, index, block))
}

func blockDelta(index int, delta string) string {
	return event("content_block_delta", fmt.Sprintf(`"index":%d,"delta":%s`, index, delta))
}

func blockStop(index int) string {
	return event("content_block_stop", fmt.Sprintf(`"index":%d`, index))
}

// whole is a block that comes at once.
func whole(index int, block string) string { return blockStart(index, block) + blockStop(index) }

// text is a block of text, tool one of a call.
func text(index int, s string) string {
	return blockStart(index, `{"type":"text","text":""}`) + blockDelta(index, fmt.Sprintf(`{"type":"text_delta","text":%q}`, s)) + blockStop(index)
}

func tool(index int, name string, pieces ...string) string {
	s := blockStart(index, fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d","name":%q,"input":{}}`, index, name))
	for _, p := range pieces {
		s += blockDelta(index, fmt.Sprintf(`{"type":"input_json_delta","partial_json":%q}`, p))
	}
	return s + blockStop(index)
}

// thinking is a block of thinking with its signature.
func thinking(index int, s, signature string) string {
	return blockStart(index, `{"type":"thinking","thinking":"","signature":""}`) +
		blockDelta(index, fmt.Sprintf(`{"type":"thinking_delta","thinking":%q}`, s)) +
		blockDelta(index, fmt.Sprintf(`{"type":"signature_delta","signature":%q}`, signature)) + blockStop(index)
}
