// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API's group and version.
var GroupVersion = schema.GroupVersion{Group: "ringcap.io", Version: "v1alpha1"}

// AddToScheme adds the kinds of this package to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&CaptureRing{}, &CaptureRingList{}, &Cluster{}, &ClusterList{}, &NodeCapture{}, &NodeCaptureList{},
		&PodCapture{}, &PodCaptureList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
