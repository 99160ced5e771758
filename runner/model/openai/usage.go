package openai

import (
	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// usage is the usage of an answer, in all fields that providers report it in.
type usage struct {
	Prompt     httpapi.Count `json:"prompt_tokens"`
	Completion httpapi.Count `json:"completion_tokens"`
	Total      httpapi.Count `json:"total_tokens"`

	PromptDetails struct {
		Cached     httpapi.Count `json:"cached_tokens"`
		CacheWrite httpapi.Count `json:"cache_write_tokens"`
		Text       httpapi.Count `json:"text_tokens"`
		Audio      httpapi.Count `json:"audio_tokens"`
		Image      httpapi.Count `json:"image_tokens"`
		Video      httpapi.Count `json:"video_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning httpapi.Count `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`

	Cached        httpapi.Count `json:"cached_tokens"`               // Moonshot
	NumCached     httpapi.Count `json:"num_cached_tokens"`           // Mistral
	CacheHit      httpapi.Count `json:"prompt_cache_hit_tokens"`     // DeepSeek
	CacheCreation httpapi.Count `json:"cache_creation_input_tokens"` // Vercel

	Audio        httpapi.Count `json:"audio_tokens"`         // Mistral
	AudioSeconds httpapi.Count `json:"prompt_audio_seconds"` // Mistral

	Cost  httpapi.Cost  `json:"cost"` // OpenRouter, Vercel, Perplexity: US dollars
	Ticks httpapi.Ticks `json:"cost_in_usd_ticks"`
}

// mediaApart returns the tokens of audio, images and videos in the prompt that the reported prompt tokens leave out.
// Mistral counts them only in the total, as other servers count thinking.
func (u *usage) mediaApart() httpapi.Count {
	details := &u.PromptDetails
	media := max(details.Audio+details.Image+details.Video, u.Audio)
	rest := u.Total - u.Prompt - u.Completion
	isCounted := details.Text > 0 && details.Text+media == u.Prompt
	switch {
	case rest <= 0, rest == u.CompletionDetails.Reasoning, isCounted, media > rest:
		return 0
	case media == 0 && u.AudioSeconds > 0: // how long the audio is, and not how many tokens
		return rest
	}
	return media
}

// convert returns the usage of a step.
func (u *usage) convert() step.Usage {
	return httpapi.Report{
		Input: u.Prompt + u.mediaApart(), Output: u.Completion, Total: u.Total,
		Reasoning:  u.CompletionDetails.Reasoning,
		CacheRead:  max(u.PromptDetails.Cached, u.Cached, u.NumCached, u.CacheHit),
		CacheWrite: max(u.PromptDetails.CacheWrite, u.CacheCreation),
		Cost:       u.Cost, Ticks: u.Ticks,
	}.Usage()
}
