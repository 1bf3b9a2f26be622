// Command manifests prints, as one JSON list, the objects that virt-operator would create for
// KubeVirt's control plane: definitions, rights, webhooks and aggregated APIs.
package main

import (
	"encoding/json"
	"os"

	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/rbac"
)

const namespace = "kubevirt"

var definitions = []func() (*extensions.CustomResourceDefinition, error){
	components.NewKubeVirtCrd,
	components.NewMigrationPolicyCrd,
	components.NewPresetCrd,
	components.NewReplicaSetCrd,
	components.NewVirtualMachineCloneCrd,
	components.NewVirtualMachineClusterInstancetypeCrd,
	components.NewVirtualMachineClusterPreferenceCrd,
	components.NewVirtualMachineCrd,
	components.NewVirtualMachineExportCrd,
	components.NewVirtualMachineInstanceCrd,
	components.NewVirtualMachineInstanceMigrationCrd,
	components.NewVirtualMachineInstancetypeCrd,
	components.NewVirtualMachinePoolCrd,
	components.NewVirtualMachinePreferenceCrd,
	components.NewVirtualMachineRestoreCrd,
	components.NewVirtualMachineSnapshotContentCrd,
	components.NewVirtualMachineSnapshotCrd,
}

func main() {
	var items []any
	for _, definition := range definitions {
		made, err := definition()
		if err != nil {
			panic(err)
		}
		items = append(items, made)
	}
	items = append(items, components.NewKubeVirtPriorityClassCR())
	for _, rights := range [][]any{
		all(rbac.GetAllCluster()),
		all(rbac.GetAllApiServer(namespace)),
		all(rbac.GetAllController(namespace)),
		all(rbac.GetAllHandler(namespace)),
	} {
		items = append(items, rights...)
	}
	items = append(items,
		components.NewVirtAPIMutatingWebhookConfiguration(namespace),
		components.NewVirtAPIValidatingWebhookConfiguration(namespace),
	)
	for _, service := range components.NewVirtAPIAPIServices(namespace) {
		items = append(items, service)
	}
	list := map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
	if err := json.NewEncoder(os.Stdout).Encode(list); err != nil {
		panic(err)
	}
}

func all[T any](objects []T) []any {
	var items []any
	for _, object := range objects {
		items = append(items, object)
	}
	return items
}
