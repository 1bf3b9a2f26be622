// Command controller-runtime is the yardstick of the benchmark: the least operator a Go team
// would write with controller-runtime. It adds a finalizer and writes the status, nothing more.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const finalizer = "novacron.io/bench"

type reconciler struct {
	client.Client
}

// Reconcile makes at most two writes: the finalizer, then the status.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	machine := &VirtualMachine{}
	if err := r.Get(ctx, request.NamespacedName, machine); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !machine.DeletionTimestamp.IsZero() {
		if controllerutil.RemoveFinalizer(machine, finalizer) {
			return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, machine))
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(machine, finalizer) {
		if err := r.Update(ctx, machine); err != nil {
			return ctrl.Result{}, err
		}
	}
	if machine.Status.Phase == "Running" {
		return ctrl.Result{}, nil
	}
	machine.Status.Phase = "Running"
	machine.Status.NodeName = "host-0"
	meta.SetStatusCondition(&machine.Status.Conditions, metav1.Condition{
		Type:               "Ready",
		Status:             metav1.ConditionTrue,
		Reason:             "Running",
		Message:            "The machine is running.",
		ObservedGeneration: machine.Generation,
	})
	return ctrl.Result{}, r.Status().Update(ctx, machine)
}

func run() error {
	probes := flag.String("health-probe-bind-addr", "127.0.0.1:8081", "where /readyz is served")
	workers := flag.Int("workers", 16, "reconciles at the same time")
	flag.Parse() // controller-runtime itself registers --kubeconfig, which GetConfig reads
	ctrl.SetLogger(textlogger.NewLogger(textlogger.NewConfig()))

	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.QPS = -1 // no limit on our side: the server decides how fast we may go
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                 scheme,
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: *probes,
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).
		For(&VirtualMachine{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: *workers}).
		Complete(&reconciler{manager.GetClient()})
	if err != nil {
		return err
	}
	if err := manager.AddReadyzCheck("caches", cachesSynced(manager)); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

func cachesSynced(manager ctrl.Manager) func(*http.Request) error {
	return func(request *http.Request) error {
		if !manager.GetCache().WaitForCacheSync(request.Context()) {
			return fmt.Errorf("caches are not filled yet")
		}
		return nil
	}
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
