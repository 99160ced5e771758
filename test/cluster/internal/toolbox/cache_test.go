package toolbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A bench is a layerCache, and the messages that it printed.
type bench struct {
	layerCache
	messages []string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{layerCache: layerCache{dir: filepath.Join(t.TempDir(), "layers")}}
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	b.now = func() time.Time { day = day.Add(time.Hour); return day }
	b.say = func(text string) { b.messages = append(b.messages, text) }
	return b
}

// toy is a layer of one file, which counts how often it was made.
func toy(input string, made *int) layer {
	return layer{name: "toy", inputs: []string{input}, fill: func(_ context.Context, root string) error {
		*made++
		return os.WriteFile(filepath.Join(root, "input"), []byte(input), 0o600)
	}}
}

func TestALayerIsMadeOnce(t *testing.T) {
	b, made := newBench(t), 0
	first, err := b.layer(t.Context(), toy("a", &made))
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.layer(t.Context(), toy("a", &made))
	if err != nil {
		t.Fatal(err)
	}
	if made != 1 || first != second {
		t.Errorf("it was made %d times: %v, then %v", made, first, second)
	}
	if _, err := b.layer(t.Context(), toy("b", &made)); err != nil || made != 2 {
		t.Errorf("of something else it was made %d times: %v", made, err)
	}
	if len(b.messages) != 4 || !strings.Contains(b.messages[0], "once for this machine") {
		t.Errorf("it said %q", b.messages)
	}
}

func TestADamagedLayerIsMadeAgain(t *testing.T) {
	b, made := newBench(t), 0
	l, err := b.layer(t.Context(), toy("a", &made))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(l.File, 1); err != nil {
		t.Fatal(err)
	}
	again, err := b.layer(t.Context(), toy("a", &made))
	if err != nil || made != 2 || again.Sum != l.Sum && again.Length < 2 {
		t.Errorf("it was made %d times: %+v, %v", made, again, err)
	}
}

func TestWhatWasCutShortLeavesNothing(t *testing.T) {
	b, made := newBench(t), 0
	wrong := errors.New("no mirror")
	_, err := b.layer(t.Context(), layer{name: "toy", fill: func(context.Context, string) error { return wrong }})
	if !errors.Is(err, wrong) || !strings.Contains(err.Error(), "making layer toy") {
		t.Errorf("error is %v", err)
	}
	if err := os.MkdirAll(filepath.Join(b.dir, making+"1", "tree"), 0o755); err != nil { // as a machine that was switched off
		t.Fatal(err)
	}
	if _, err := b.layer(t.Context(), toy("a", &made)); err != nil {
		t.Fatal(err)
	}
	if got := b.names(t); len(got) != 1 || !strings.HasPrefix(got[0], "toy-") {
		t.Errorf("there is %v", got)
	}
}

func TestLayersThatNobodyUsesGo(t *testing.T) {
	b, made := newBench(t), 0
	for _, input := range []string{"a", "b", "c", "a", "d"} { // b was used longest ago
		if _, err := b.layer(t.Context(), toy(input, &made)); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{toy("a", nil).file(), toy("c", nil).file(), toy("d", nil).file()}
	slices.Sort(want)
	if got := b.names(t); !slices.Equal(got, want) {
		t.Errorf("there is %v, want %v", got, want)
	}
}

// names are the layers that are there.
func (b *bench) names(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.Name() != ".lock" {
			names = append(names, e.Name())
		}
	}
	return names
}
