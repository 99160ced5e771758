package compaction_test

import (
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/compaction"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// show adds a file to the last step.
func (k *transcript) show(f step.File) {
	last := &(*k)[len(*k)-1]
	kind := step.PartImage
	if f.Width == 0 {
		kind = step.PartDocument
	}
	last.Parts = append(last.Parts, step.Part{Kind: kind, File: &f})
}

// An image counts by its pixels, a document by its size, and both are bounded from below.
func TestImagesAndDocumentsCountAsTokens(t *testing.T) {
	cases := map[string]struct {
		file step.File
		want int64
	}{
		"a small image":           {step.File{Width: 10, Height: 10}, 85},
		"an image of 750,000":     {step.File{Width: 1000, Height: 750}, 1_000},
		"an image that is scaled": {step.File{Width: 8000, Height: 5000}, 1_600},
		"a small document":        {step.File{Size: 1_000}, 1_500},
		"a large document":        {step.File{Size: 4_000_000}, 100_000},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var k transcript
			k.user("do it")
			without := compaction.Used(&model.Request{Steps: k})
			k.show(tc.file)
			if got := compaction.Used(&model.Request{Steps: k}) - without; got != tc.want {
				t.Errorf("it is %d tokens, want %d", got, tc.want)
			}
		})
	}
}

// Old images are removed from the session like long results, whatever text is beside them.
func TestClearingRemovesImages(t *testing.T) {
	var k transcript
	k.user("look at all of them")
	for range 18 {
		k.turn("a chart")
		k.show(step.File{Width: 2000, Height: 2000, Digest: "d"})
	}
	used := compaction.Used(&model.Request{Steps: k})
	cut, ok := compaction.Plan(k, used, 10_000)
	if !ok || !cut.Clear {
		t.Fatalf("the plan is %+v, %v", cut, ok)
	}
	left := compaction.Apply(k, cut, "")
	files := 0
	for _, s := range left {
		if s.HasFiles() {
			files++
		} else if s.Role == step.RoleTool && s.Text() != clearedText {
			t.Errorf("a result without its image has the text %q", s.Text())
		}
	}
	if now := compaction.Used(&model.Request{Steps: left}); files == 0 || files == 18 || now > 10_000 {
		t.Errorf("%d images are left, and %d of %d tokens", files, now, used)
	}
	if !k[len(k)-1].HasFiles() || !k[2].HasFiles() {
		t.Error("the session itself has changed")
	}
}

// A provider that counts images as more or fewer tokens than the estimate is believed.
func TestUsageOfARequestWithImagesIsPlausible(t *testing.T) {
	var k transcript
	k.user("look")
	for range 20 {
		k.show(step.File{Width: 4000, Height: 4000})
	}
	k.turn("ok")
	k[1].Usage = step.Usage{InputTokens: 7_680, OutputTokens: 5} // 384 for each image
	if got := compaction.Used(&model.Request{Steps: k}); got > 10_000 {
		t.Errorf("Used() = %d, and the provider reported 7,680", got)
	}
}
