// SPDX-License-Identifier: Apache-2.0

// Package consumers decides from which namespaces pods may have queues.
package consumers

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// All stands for all namespaces.
const All = "*"

// ErrNobody: a ring, or all that a Cluster depends on, names no namespace at all.
var ErrNobody = errors.New("names no namespace")

// NotNamed is why a namespace is not permitted by somebody who names others.
type NotNamed string

// Error implements error.
func (n NotNamed) Error() string { return string(n) }

// Said is what one ring or Cluster says.
type Said struct {
	// By is its kind and name: "CaptureRing mirror".
	By string
	// Consumers may be nil.
	*v1.Consumers
}

// Rule permits a namespace that all who speak permit, and none when nobody speaks.
type Rule []Said

// OfRing is the rule for a ring's own queues.
func OfRing(name string, c *v1.Consumers) Said { return Said{"CaptureRing " + name, c} }

// OfCluster is the rule for a Cluster over rings: it is never wider than these, and one that names nobody is as wide.
func OfCluster(name string, c *v1.Consumers, rings ...Said) Rule {
	if own := (Said{"Cluster " + name, c}); !own.nobody() {
		return append(Rule{own}, rings...)
	}
	return rings
}

// NamespaceLabels are those of a namespace.
type NamespaceLabels func(namespace string) (map[string]string, error)

// Check returns nil if pods of the namespace are permitted, and otherwise who does not permit them, for the person who runs the
// pod. Labels are asked for only where they decide.
func (r Rule) Check(namespace string, of NamespaceLabels) error {
	if len(r) == 0 {
		return fmt.Errorf("no CaptureRing feeds it: %w", ErrNobody)
	}
	for _, said := range r {
		if err := said.check(namespace, of); err != nil {
			return err
		}
	}
	return nil
}

// Everybody says whether pods of all namespaces are permitted.
func (r Rule) Everybody() bool {
	return len(r) > 0 && !slices.ContainsFunc(r, func(s Said) bool { return !s.everybody() })
}

// Nobody returns nil unless it is certain that no namespace is permitted; of selectors it cannot be.
func (r Rule) Nobody() error {
	var left, by []string
	for _, said := range r {
		switch {
		case said.nobody():
			return said.refuse()
		case said.everybody(), said.NamespaceSelector != nil:
			continue
		case len(by) == 0:
			left = said.Namespaces
		default:
			left = slices.DeleteFunc(slices.Clone(left), func(n string) bool { return !slices.Contains(said.Namespaces, n) })
		}
		by = append(by, said.By)
	}
	if len(by) > 0 && len(left) == 0 {
		return fmt.Errorf("spec.consumers.namespaces of %s have no name in common: a namespace must be named in each", strings.Join(by, ", "))
	}
	return nil
}

// ByLabels says whether it takes a namespace's labels to decide.
func ByLabels(c *v1.Consumers) bool { return c != nil && c.NamespaceSelector != nil }

func (s Said) nobody() bool {
	return s.Consumers == nil || len(s.Namespaces) == 0 && s.NamespaceSelector == nil
}

func (s Said) everybody() bool { return s.Consumers != nil && slices.Contains(s.Namespaces, All) }

func (s Said) refuse() error {
	return fmt.Errorf("spec.consumers of %s %w: name there whose pods may have its packets ('*' for all)", s.By, ErrNobody)
}

func (s Said) check(namespace string, of NamespaceLabels) error {
	if s.nobody() {
		return s.refuse()
	}
	if s.everybody() || slices.Contains(s.Namespaces, namespace) {
		return nil
	}
	names := strings.Join(s.Namespaces, ", ")
	if s.NamespaceSelector != nil {
		matches, err := s.selects(namespace, of)
		if err != nil || matches {
			return err
		}
		names = strings.TrimPrefix(names+" and namespaces with labels "+metav1.FormatLabelSelector(s.NamespaceSelector), " and ")
	}
	return NotNamed(fmt.Sprintf("spec.consumers of %s names %s, not %s: add the namespace there, or run the pod elsewhere", s.By, names, namespace))
}

func (s Said) selects(namespace string, of NamespaceLabels) (bool, error) {
	selector, err := metav1.LabelSelectorAsSelector(s.NamespaceSelector)
	if err != nil {
		return false, fmt.Errorf("spec.consumers.namespaceSelector of %s: %w", s.By, err)
	}
	// Of manifests that no API server has checked: nothing is not everything here.
	if selector.Empty() {
		return false, nil
	}
	have, err := of(namespace)
	if err != nil {
		return false, fmt.Errorf("spec.consumers.namespaceSelector of %s: the labels of namespace %s are not known: %w", s.By, namespace, err)
	}
	return selector.Matches(labels.Set(have)), nil
}
