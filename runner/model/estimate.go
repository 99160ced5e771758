package model

// bytesPerToken is the usual ratio of English, code and JSON.
const bytesPerToken = 4

// overheadPerItem stands for the marks that a provider puts around each
// message and tool.
const overheadPerItem = 4

// EstimateInput guesses the input tokens of a request, for where no provider
// told: a stream that was cut, a request about to be sent.
func EstimateInput(req *Request) int64 {
	size, items := len(req.System), 1
	for i := range req.Steps { // by index: a session has thousands of them, and they are large
		items++
		s := &req.Steps[i]
		for j := range s.Parts {
			size += len(s.Parts[j].Text) + len(s.Parts[j].Provider)
		}
		for j := range s.Calls {
			size += len(s.Calls[j].Name) + len(s.Calls[j].Args)
		}
	}
	for _, t := range req.Tools {
		items++
		size += len(t.Name) + len(t.Description) + len(t.Input)
	}
	return EstimateTokens(size) + int64(items*overheadPerItem)
}

// EstimateTokens guesses how many tokens so many bytes of text are.
func EstimateTokens(bytes int) int64 {
	return int64((bytes + bytesPerToken - 1) / bytesPerToken)
}
