// SPDX-License-Identifier: Apache-2.0

// Command apilint holds the API's Go types against Kubernetes' conventions: kube-api-linter, without the golangci-lint that it is
// usually a plugin of.
//
//	go run . PACKAGES
package main

import (
	"log"

	"golang.org/x/tools/go/analysis/multichecker"
	"sigs.k8s.io/kube-api-linter/pkg/analysis/registry"
	"sigs.k8s.io/kube-api-linter/pkg/config"
	_ "sigs.k8s.io/kube-api-linter/pkg/registration"
)

var linters = config.Linters{Disable: []string{
	// Nothing and the zero value mean the same in this API, so that a manifest may have bpf: "" or priority: 0, and a pointer is used
	// where they differ; counts are always written, zero too. These two would have pointers to all of them.
	"optionalfields", "requiredfields",
	// Selectors and patterns have no field that each needs; validation rules define which fields go together.
	"arrayofstruct",
	// 50ms is what people write, and metav1.Duration what Kubernetes' own configuration takes.
	"nodurations",
	// A packet's timestamp is the field's standard term.
	"notimestamp",
}}

type settings = map[string]any

// policies are the choices for CRDs, and controller-gen's own marker of defaults.
var policies = config.LintersConfig{
	"conditions": settings{"useProtobuf": "Forbid", "usePatchStrategy": "Forbid"},
	"defaults": settings{
		"preferredDefaultMarker": "kubebuilder:default",
		"omitempty":              settings{"policy": "Ignore"},
		"omitzero":               settings{"policy": "Forbid"},
	},
}

func main() {
	analyzers, err := registry.DefaultRegistry().InitializeLinters(linters, policies)
	if err != nil {
		log.Fatal(err)
	}
	multichecker.Main(analyzers...)
}
