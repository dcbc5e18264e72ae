// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// NodeSelector selects nodes: those that have all of matchLabels and fit all of matchExpressions. Unlike a LabelSelector, it
// selects no node when it is empty.
//
// Earlier releases had the labels right here, without matchLabels, and such a selector may still be stored. Therefore the API
// server keeps unknown fields, and the selector is read as it was meant. The rule below accepts a selector that was stored
// before, because the API server evaluates it for updates of the status, too.
//
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() && !has(oldSelf.value().matchLabels) && !has(oldSelf.value().matchExpressions) || has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",optionalOldSelf=true,message="selects by no label: give matchLabels, such as nodeSelector: {matchLabels: {role: sensor}}, or matchExpressions; leave nodeSelector out for all nodes"
type NodeSelector struct {
	// matchLabels are labels that a node must have, up to 16.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	MatchLabels map[string]string `json:"matchLabels,omitempty"`

	// matchExpressions are requirements that a node's labels must fit, up to 16.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	MatchExpressions []NodeSelectorRequirement `json:"matchExpressions,omitempty"`

	// Old is set if the selector is written as in earlier releases. It is not stored.
	Old bool `json:"-"`
	// Unknown are fields that no release defines, sorted. They are not stored.
	Unknown []string `json:"-"`
}

// NodeSelectorRequirement is a requirement on a node's labels.
//
// +kubebuilder:validation:XValidation:rule="self.operator in ['In', 'NotIn'] == (has(self.values) && size(self.values) > 0)",message="In and NotIn need values, such as {key: role, operator: In, values: [sensor]}; leave values out with Exists and DoesNotExist"
type NodeSelectorRequirement struct {
	// key of the label.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="must be the key of a label, such as role or kubernetes.io/hostname"
	Key string `json:"key"`

	// operator of the requirement. In: the label's value is one of values. NotIn: it is none of them, or the node has no such
	// label. Exists: the node has the label. DoesNotExist: the node does not have it.
	//
	// +required
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist
	Operator metav1.LabelSelectorOperator `json:"operator"`

	// values of In and NotIn, 1 to 256.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	Values []string `json:"values,omitempty"`
}

// MaxSelectorValues is the greatest number of values of a requirement.
const MaxSelectorValues = 256

// UnmarshalJSON implements json.Unmarshaler. It also reads the form of earlier releases.
func (s *NodeSelector) UnmarshalJSON(text []byte) error {
	var old map[string]string
	if json.Unmarshal(text, &old) == nil && len(old) > 0 {
		*s = NodeSelector{MatchLabels: old, Old: true}
		return nil
	}
	type plain NodeSelector
	var decoded plain
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	if err := json.Unmarshal(text, &decoded); err != nil {
		return err
	}
	delete(fields, "matchLabels")
	delete(fields, "matchExpressions")
	decoded.Unknown = slices.Sorted(maps.Keys(fields))
	*s = NodeSelector(decoded)
	return nil
}

// AsSelector returns the selector's label selector; nil selects everything. The error begins with the field's name relative to
// nodeSelector.
func (s *NodeSelector) AsSelector() (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	if len(s.Unknown) > 0 {
		return nil, fmt.Errorf(".%s: there is no such field beside matchLabels and matchExpressions: write labels in matchLabels", s.Unknown[0])
	}
	if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return nil, fmt.Errorf(" is {}, which selects no node: leave it out for all nodes, or give matchLabels or matchExpressions")
	}
	selector := labels.NewSelector()
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		must, err := labels.NewRequirement(key, selection.Equals, []string{s.MatchLabels[key]})
		if err != nil {
			return nil, fmt.Errorf(".matchLabels[%s]: %w", key, err)
		}
		selector = selector.Add(*must)
	}
	for i, e := range s.MatchExpressions {
		must, err := labels.NewRequirement(e.Key, operators[e.Operator], e.Values)
		if err != nil {
			return nil, fmt.Errorf(".matchExpressions[%d]: %w", i, err)
		}
		selector = selector.Add(*must)
	}
	return selector, nil
}

var operators = map[metav1.LabelSelectorOperator]selection.Operator{
	metav1.LabelSelectorOpIn:           selection.In,
	metav1.LabelSelectorOpNotIn:        selection.NotIn,
	metav1.LabelSelectorOpExists:       selection.Exists,
	metav1.LabelSelectorOpDoesNotExist: selection.DoesNotExist,
}

// String returns the selector as kubectl's --selector takes it; it is empty for a nil selector.
func (s *NodeSelector) String() string {
	selector, err := s.AsSelector()
	if err != nil {
		return strings.TrimSpace("spec.nodeSelector" + err.Error())
	}
	return selector.String()
}

// Rewrite returns the command that writes the selector of the named CaptureRing in this release's form.
func (s *NodeSelector) Rewrite(ring string) string {
	written := map[string]any{"matchLabels": s.MatchLabels}
	for key := range s.MatchLabels {
		written[key] = nil
	}
	// Maps of strings have a JSON.
	patch, _ := json.Marshal(map[string]any{"spec": map[string]any{"nodeSelector": written}})
	return fmt.Sprintf("kubectl patch capturering %s --type=merge -p '%s'", ring, patch)
}

// NodesWith selects nodes with one of the values of a label.
func NodesWith(label string, values ...string) *NodeSelector {
	if len(values) == 1 {
		return &NodeSelector{MatchLabels: map[string]string{label: values[0]}}
	}
	return &NodeSelector{MatchExpressions: []NodeSelectorRequirement{{Key: label, Operator: metav1.LabelSelectorOpIn, Values: values}}}
}
