//go:build tools

// Package helm pins helm, so that go.mod and go.sum name every source file that goes into it.
package helm

import _ "helm.sh/helm/v3/cmd/helm"
