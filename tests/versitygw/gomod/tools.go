//go:build tools

// Package versitygw pins versitygw, so that go.mod and go.sum name every source file of it.
package versitygw

import _ "github.com/versity/versitygw/cmd/versitygw"
