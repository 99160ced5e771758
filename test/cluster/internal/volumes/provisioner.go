// Package volumes gives claims of the class "standard" a place on the one node: a folder below the cluster's own, as a
// PersistentVolume of the kind `local`, so that fsGroup works as with any disk. The size that a claim requests is not
// enforced, as on most test clusters, unless the claim has
//
//	annotations: {deckhand.test/enforce-size: "true"}
//
// Its folder is then a file system in memory of exactly that size, for tests of a full disk. Written bytes count as
// memory of the pod that writes them.
//
// Volumes are made where their first pod was scheduled (WaitForFirstConsumer), and are deleted with their claim and all
// its data. Block volumes are not supported.
package volumes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// again is the delay before a failed pass is repeated.
const again = time.Second

// Options are the nodes and the folder of the volumes.
type Options struct {
	Kubeconfig string
	Nodes      []string
	Dir        string    // of the volumes; made when it is not there
	Log        io.Writer // a line for each volume that comes and goes
}

// Serve makes and removes volumes until ctx ends.
func Serve(ctx context.Context, o Options) error {
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading kubeconfig: %w", err)
	}
	config.QPS, config.Burst = -1, 0 // limits would hide the speed of what is tested
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making client: %w", err)
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return fmt.Errorf("making the folder of volumes: %w", err)
	}
	_, err = client.StorageV1().StorageClasses().Create(ctx, class(), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating StorageClass %s: %w", Class, err)
	}
	w := &worker{site: site{nodes: o.Nodes, dir: o.Dir, mount: mountMemory}, client: client, log: o.Log}
	return w.work(ctx)
}

// A worker carries out the plans of decide.
type worker struct {
	site
	client  kubernetes.Interface
	claims  listers.PersistentVolumeClaimLister
	volumes listers.PersistentVolumeLister
	log     io.Writer
}

// work calls pass whenever a claim or a volume has changed.
func (w *worker) work(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(w.client, 0)
	claims, volumes := factory.Core().V1().PersistentVolumeClaims(), factory.Core().V1().PersistentVolumes()
	w.claims, w.volumes = claims.Lister(), volumes.Lister()
	changed := make(chan struct{}, 1)
	tell := func() {
		select {
		case changed <- struct{}{}:
		default: // a change is pending already
		}
	}
	for _, informer := range []cache.SharedIndexInformer{claims.Informer(), volumes.Informer()} {
		handler := cache.ResourceEventHandlerFuncs{AddFunc: func(any) { tell() }, UpdateFunc: func(any, any) { tell() }}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watching: %w", err)
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		if err := w.pass(ctx); err != nil {
			fmt.Fprintln(w.log, err)
			time.AfterFunc(again, tell)
		}
	}
}

// pass reads claims and volumes, and carries out one plan.
func (w *worker) pass(ctx context.Context) error {
	claims, err := w.claims.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("listing claims: %w", err)
	}
	volumes, err := w.volumes.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("listing volumes: %w", err)
	}
	p := w.decide(claims, volumes)
	var errs []error
	for _, v := range p.create {
		errs = append(errs, w.create(ctx, v))
	}
	for _, v := range p.remove {
		errs = append(errs, w.remove(ctx, v))
	}
	return errors.Join(errs...)
}

// create makes the folder before the volume, because a volume that exists can be mounted.
func (w *worker) create(ctx context.Context, v *corev1.PersistentVolume) error {
	if err := w.lay(v); err != nil {
		return fmt.Errorf("creating volume %s: %w", v.Name, err)
	}
	_, err := w.client.CoreV1().PersistentVolumes().Create(ctx, v, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil // our view is older than our work
	}
	if err != nil {
		return fmt.Errorf("creating volume %s: %w", v.Name, err)
	}
	fmt.Fprintf(w.log, "created %s for %s/%s, %s\n", v.Name, v.Spec.ClaimRef.Namespace, v.Spec.ClaimRef.Name, v.Spec.Capacity.Storage())
	return nil
}

// remove removes the folder before the volume, because no later pass sees a deleted volume.
func (w *worker) remove(ctx context.Context, v *corev1.PersistentVolume) error {
	if err := w.clear(v); err != nil {
		return fmt.Errorf("removing volume %s: %w", v.Name, err)
	}
	err := w.client.CoreV1().PersistentVolumes().Delete(ctx, v.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing volume %s: %w", v.Name, err)
	}
	fmt.Fprintf(w.log, "removed %s\n", v.Name)
	return nil
}

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
