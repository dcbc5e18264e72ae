// SPDX-License-Identifier: Apache-2.0

// Package consumers decides which namespaces' pods may have queues.
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

// ErrNobody is the error of a ring, or of a Cluster with its rings, if spec.consumers names no namespace at all.
var ErrNobody = errors.New("names no namespace")

// NotNamed is the error for a namespace that is missing in a list of namespaces.
type NotNamed string

// Error implements error.
func (n NotNamed) Error() string { return string(n) }

// Source is the spec.consumers of one ring or Cluster.
type Source struct {
	// By is its kind and name, such as "CaptureRing mirror".
	By string
	// Consumers may be nil.
	*v1.Consumers
}

// Rule permits a namespace that all of its sources permit; a rule without sources permits none.
type Rule []Source

// OfRing returns the source of a ring's own queues.
func OfRing(name string, c *v1.Consumers) Source { return Source{"CaptureRing " + name, c} }

// OfCluster returns the rule for a Cluster over rings: it never permits more than the rings, and a Cluster that names no
// namespace permits the same.
func OfCluster(name string, c *v1.Consumers, rings ...Source) Rule {
	if own := (Source{"Cluster " + name, c}); !own.nobody() {
		return append(Rule{own}, rings...)
	}
	return rings
}

// NamespaceLabels returns a namespace's labels.
type NamespaceLabels func(namespace string) (map[string]string, error)

// Check returns nil if pods of the namespace are permitted, else which object does not permit them, for the pod's author. It
// asks for labels only if they matter.
func (r Rule) Check(namespace string, of NamespaceLabels) error {
	if len(r) == 0 {
		return fmt.Errorf("no CaptureRing feeds it: %w", ErrNobody)
	}
	for _, source := range r {
		if err := source.check(namespace, of); err != nil {
			return err
		}
	}
	return nil
}

// Everybody reports whether pods of all namespaces are permitted.
func (r Rule) Everybody() bool {
	return len(r) > 0 && !slices.ContainsFunc(r, func(s Source) bool { return !s.everybody() })
}

// Nobody returns an error if no namespace can be permitted; of a rule with selectors that is unknown, and it returns nil.
func (r Rule) Nobody() error {
	var left, by []string
	for _, source := range r {
		switch {
		case source.nobody():
			return source.refuse()
		case source.everybody(), source.NamespaceSelector != nil:
			continue
		case len(by) == 0:
			left = source.Namespaces
		default:
			left = slices.DeleteFunc(slices.Clone(left), func(n string) bool { return !slices.Contains(source.Namespaces, n) })
		}
		by = append(by, source.By)
	}
	if len(by) > 0 && len(left) == 0 {
		return fmt.Errorf("spec.consumers.namespaces of %s have no name in common: a namespace must be named in each", strings.Join(by, ", "))
	}
	return nil
}

// ByLabels reports whether the decision depends on a namespace's labels.
func ByLabels(c *v1.Consumers) bool { return c != nil && c.NamespaceSelector != nil }

func (s Source) nobody() bool {
	return s.Consumers == nil || len(s.Namespaces) == 0 && s.NamespaceSelector == nil
}

func (s Source) everybody() bool { return s.Consumers != nil && slices.Contains(s.Namespaces, All) }

func (s Source) refuse() error {
	return fmt.Errorf("spec.consumers of %s %w: list there the namespaces that may have its packets ('*' for all)", s.By, ErrNobody)
}

func (s Source) check(namespace string, of NamespaceLabels) error {
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

func (s Source) selects(namespace string, of NamespaceLabels) (bool, error) {
	selector, err := metav1.LabelSelectorAsSelector(s.NamespaceSelector)
	if err != nil {
		return false, fmt.Errorf("spec.consumers.namespaceSelector of %s: %w", s.By, err)
	}
	// No API server may have checked the manifest: an empty selector selects nothing here.
	if selector.Empty() {
		return false, nil
	}
	have, err := of(namespace)
	if err != nil {
		return false, fmt.Errorf("spec.consumers.namespaceSelector of %s: the labels of namespace %s are not known: %w", s.By, namespace, err)
	}
	return selector.Matches(labels.Set(have)), nil
}
