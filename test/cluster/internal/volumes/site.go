package volumes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// A site is the folder of all volumes, which its nodes share.
type site struct {
	nodes []string
	dir   string
	mount func(path string, size int64) error // a file system in memory
}

// folder returns the folder of the volume of a name. It never uses a path from the volume itself,
// so that only folders of this site are removed.
func (s site) folder(name string) string { return filepath.Join(s.dir, filepath.Base(name)) }

// lay makes the folder of a volume. Like a new disk it belongs to root, and the kubelet changes its group to the
// fsGroup of the pod.
func (s site) lay(v *corev1.PersistentVolume) error {
	folder := s.folder(v.Name)
	if err := os.Mkdir(folder, 0o755); errors.Is(err, os.ErrExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("making the folder: %w", err)
	}
	if v.Annotations[enforceSize] != "true" {
		return nil
	}
	if err := s.mount(folder, v.Spec.Capacity.Storage().Value()); err != nil {
		return errors.Join(fmt.Errorf("mounting the folder: %w", err), os.Remove(folder))
	}
	return nil
}

// clear removes the folder of a volume with all its files. No pod uses it: Kubernetes keeps a claim while a pod uses
// it.
func (s site) clear(v *corev1.PersistentVolume) error {
	folder := s.folder(v.Name)
	err := unix.Unmount(folder, unix.MNT_DETACH)
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) { // nothing is mounted there
		return fmt.Errorf("unmounting the folder: %w", err)
	}
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("removing the folder: %w", err)
	}
	return nil
}

// mountMemory mounts a file system of a size in memory.
func mountMemory(path string, size int64) error {
	return unix.Mount("deckhand-volume", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("size=%d,mode=0755", size))
}
