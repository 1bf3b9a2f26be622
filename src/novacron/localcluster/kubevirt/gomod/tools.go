//go:build tools

// Package kubevirt pins the programs of KubeVirt's control plane, so that go.mod and go.sum
// name every source file that goes into them.
package kubevirt

import (
	_ "kubevirt.io/kubevirt/cmd/virt-api"
	_ "kubevirt.io/kubevirt/cmd/virt-controller"
	_ "kubevirt.io/kubevirt/cmd/virtctl"
)
