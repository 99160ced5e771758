package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// kubeletSysctls are settings of the whole machine that a kubelet changes.
var kubeletSysctls = []string{
	"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic",
	"kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
}

// saveSysctls stores the settings that the kubelet will change, unless they are stored already.
func (h host) saveSysctls() error {
	if _, err := os.Stat(h.Path("sysctls.json")); err == nil {
		return nil
	}
	saved := map[string]string{}
	for _, name := range kubeletSysctls {
		if value, err := os.ReadFile("/proc/sys/" + name); err == nil {
			saved[name] = strings.TrimSpace(string(value))
		}
	}
	data, err := json.Marshal(saved)
	if err != nil {
		return fmt.Errorf("encoding sysctls: %w", err)
	}
	return write(h.Path("sysctls.json"), data, 0o644)
}

// restoreSysctls restores the stored settings.
func (h host) restoreSysctls() error {
	data, err := os.ReadFile(h.Path("sysctls.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading saved sysctls: %w", err)
	}
	var saved map[string]string
	if err := json.Unmarshal(data, &saved); err != nil {
		return fmt.Errorf("reading saved sysctls: %w", err)
	}
	var errs []error
	for name, value := range saved {
		errs = append(errs, os.WriteFile("/proc/sys/"+name, []byte(value), 0o644))
	}
	return errors.Join(errs...)
}
