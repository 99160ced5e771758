package volumes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

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
