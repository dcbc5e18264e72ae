// SPDX-License-Identifier: Apache-2.0

package main

import (
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// provenance returns the in-toto statement, with a predicate of SLSA 1.0, that says what an image was built of. It is attached to the
// image. It has no times and no identity of the machine, which would make each build another one.
func (r recipe) provenance(index v1.ImageIndex, name string) (v1.Image, error) {
	digest, err := index.Digest()
	if err != nil {
		return nil, err
	}
	type object = map[string]any
	return attach(object{
		"_type":         "https://in-toto.io/Statement/v1",
		"subject":       []object{{"name": name, "digest": object{digest.Algorithm: digest.Hex}}},
		"predicateType": "https://slsa.dev/provenance/v1",
		"predicate": object{
			"buildDefinition": object{
				"buildType":            source + "/release/v1",
				"externalParameters":   object{"target": "make release", "image": name},
				"resolvedDependencies": []object{{"uri": "git+" + source, "digest": object{"gitCommit": r.revision}}},
			},
			"runDetails": object{"builder": object{"id": source + "/release/build"}},
		},
	}, "application/vnd.in-toto+json", index)
}
