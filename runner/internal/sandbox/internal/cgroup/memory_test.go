package cgroup

import (
	"os"
	"path/filepath"
	"testing"
)

// tree writes files below a directory of the test.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestMemory(t *testing.T) {
	const old, unified = "9:name=systemd:/x\n4:cpu,memory:/pods/one\n0::/\n", "0::/pods/one\n"
	for name, tc := range map[string]struct {
		files              map[string]string
		groups             string
		limit, held, kills int64
	}{
		"the first version, seen from the machine": {
			map[string]string{
				"memory/memory.limit_in_bytes":          "9223372036854771712\n",
				"memory/pods/one/memory.limit_in_bytes": "1000\n",
				"memory/pods/one/memory.usage_in_bytes": "900\n",
				"memory/pods/one/memory.stat":           "cache 500\nrss 300\nshmem 50\n",
				"memory/pods/one/memory.oom_control":    "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
			}, old, 1000, 350, 2,
		},
		"the first version, seen from a container": {
			map[string]string{"memory/memory.limit_in_bytes": "1000\n", "memory/memory.usage_in_bytes": "100\n"}, old, 1000, 100, 0,
		},
		"the second version, seen from a container": {
			map[string]string{
				"memory.max": "1000\n", "memory.current": "950\n", "memory.stat": "anon 700\nfile 100\nkernel_stack 10\nshmem 20\nslab_unreclaimable 5\n",
				"memory.events": "low 0\noom 3\noom_kill 1\n",
			}, unified, 1000, 735, 1,
		},
		"the second version without a stat": {map[string]string{"memory.max": "1000\n", "memory.current": "950\n"}, unified, 1000, 950, 0},
		"no limit, first version":           {map[string]string{"memory/memory.limit_in_bytes": "9223372036854771712\n"}, old, 0, 0, 0},
		"no limit, second version":          {map[string]string{"memory.max": "max\n", "memory.current": "950\n"}, unified, 0, 0, 0},
		"nothing to be seen":                {nil, "", 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := find(tree(t, tc.files), tc.groups)
			if m.Limit() != tc.limit || m.Unreclaimable() != tc.held || m.OOMKills() != tc.kills {
				t.Errorf("limit %d, held %d, kills %d, want %d, %d, %d", m.Limit(), m.Unreclaimable(), m.OOMKills(), tc.limit, tc.held, tc.kills)
			}
		})
	}
}
