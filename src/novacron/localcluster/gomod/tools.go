//go:build tools

// Package localcluster pins the programs of a Kubernetes control plane, so that
// go.mod and go.sum name every source file that goes into them.
package localcluster

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
