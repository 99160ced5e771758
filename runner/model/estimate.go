package model

import (
	"github.com/deckhand-dev/deckhand/runner/step"
)

// bytesPerToken is the usual ratio of English, code and JSON.
const bytesPerToken = 4

// overheadPerItem is the estimated number of tokens that a provider adds for each message and tool.
const overheadPerItem = 4

// EstimateInput estimates the input tokens of a request that no provider reported: after a broken stream, or before a
// request.
func EstimateInput(req *Request) int64 {
	size, items := len(req.System), 1
	var files []int64          // tokens of each
	for i := range req.Steps { // by index: a session has thousands of them, and they are large
		items++
		s := &req.Steps[i]
		for j := range s.Parts {
			size += len(s.Parts[j].Text) + len(s.Parts[j].Provider)
			if f := s.Parts[j].File; f != nil {
				files = append(files, EstimateFile(f))
			}
		}
		for j := range s.Calls {
			size += len(s.Calls[j].Name) + len(s.Calls[j].Args)
		}
	}
	for _, t := range req.Tools {
		items++
		size += len(t.Name) + len(t.Description) + len(t.Input)
	}
	total := EstimateTokens(size) + int64(items*overheadPerItem)
	for _, tokens := range files[max(0, len(files)-MaxFiles):] {
		total += tokens
	}
	return total
}

// The cost of images and documents, in tokens. Providers scale large images down before they count them. A page of a
// PDF counts as text and an image.
const (
	pixelsPerToken     = 750
	leastImage         = 85
	mostImage          = 1_600
	bytesPerTokenOfPDF = 40
	leastDocument      = 1_500
)

// EstimateFile guesses how many tokens an image or a document is.
func EstimateFile(f *step.File) int64 {
	if f.Width == 0 {
		return max(leastDocument, f.Size/bytesPerTokenOfPDF)
	}
	return min(max(int64(f.Width)*int64(f.Height)/pixelsPerToken, leastImage), mostImage)
}

// EstimateTokens estimates how many tokens a number of bytes of text are.
func EstimateTokens(bytes int) int64 {
	return int64((bytes + bytesPerToken - 1) / bytesPerToken)
}
