package volumes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A folder comes with its volume and goes with it, and with nothing else.
func TestFolders(t *testing.T) {
	dir := t.TempDir()
	s := site{nodes: []string{"other", "node"}, dir: filepath.Join(dir, "volumes")}
	outside := filepath.Join(dir, "outside")
	for _, d := range []string{s.dir, outside} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	v := s.volume(claim())
	for range 2 { // it may be that it is made again
		if err := s.lay(v); err != nil {
			t.Fatal(err)
		}
	}
	folder := v.Spec.Local.Path
	if err := os.Symlink(outside, filepath.Join(folder, "link")); err != nil { // as a pod may
		t.Fatal(err)
	}
	v.Spec.Local.Path = outside // as an administrator may
	for range 2 {
		if err := s.clear(v); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("what is not ours was removed: %v", err)
	}
}

func TestNamesDoNotLeadOut(t *testing.T) {
	s := site{dir: "/volumes"}
	if got := s.folder("../etc"); got != "/volumes/etc" {
		t.Errorf("folder() = %s", got)
	}
}

func TestEnforcedSize(t *testing.T) {
	for name, tc := range map[string]struct {
		annotation string
		fails      error
		want       []string
	}{
		"nobody asked":     {},
		"somebody asked":   {annotation: "true", want: []string{"pvc-123 67108864"}},
		"and it must work": {annotation: "true", fails: errors.New("no memory"), want: []string{"pvc-123 67108864"}},
	} {
		t.Run(name, func(t *testing.T) {
			var mounted []string
			s := site{nodes: []string{"other", "node"}, dir: t.TempDir(), mount: func(path string, size int64) error {
				mounted = append(mounted, fmt.Sprint(filepath.Base(path), " ", size))
				return tc.fails
			}}
			c := claim()
			if tc.annotation != "" {
				c.Annotations[enforceSize] = tc.annotation
			}
			if err := s.lay(s.volume(c)); !errors.Is(err, tc.fails) {
				t.Errorf("lay() = %v", err)
			}
			if !slices.Equal(mounted, tc.want) {
				t.Errorf("mounted %q, want %q", mounted, tc.want)
			}
			if _, err := os.Stat(s.folder("pvc-123")); (err == nil) != (tc.fails == nil) {
				t.Errorf("after that the folder is %v", err)
			}
		})
	}
}

// The class is found by claims that name none.
func TestClass(t *testing.T) {
	c := class()
	if c.Annotations[defaultClass] != "true" || *c.ReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		t.Errorf("it is %+v", c)
	}
}
