// SPDX-License-Identifier: Apache-2.0

package consumers

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

func named(names ...string) *v1.Consumers { return &v1.Consumers{Namespaces: names} }

func labelled(value string) *v1.Consumers {
	return &v1.Consumers{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": value}}}
}

func labelsOf(namespace string) (map[string]string, error) {
	if namespace == "unknown" {
		return nil, errors.New("not yet")
	}
	return map[string]string{"team": "of-" + namespace}, nil
}

// TestWhoMayHaveQueues: nobody but who is named, by a ring, and by a Cluster no more than by all of its rings.
func TestWhoMayHaveQueues(t *testing.T) {
	both := &v1.Consumers{Namespaces: []string{"a"}, NamespaceSelector: labelled("of-b").NamespaceSelector}
	for name, test := range map[string]struct {
		rule      Rule
		yes       []string
		no        map[string]string
		nobody    string
		everybody bool
	}{
		"unset": {
			rule: Rule{OfRing("r", nil)}, no: map[string]string{"a": "spec.consumers of CaptureRing r names no namespace: list there"}, nobody: "names no namespace",
		},
		"an empty list": {rule: Rule{OfRing("r", named())}, no: map[string]string{"a": "names no namespace"}, nobody: "names no namespace"},
		"an empty selector": {
			rule: Rule{OfRing("r", &v1.Consumers{NamespaceSelector: &metav1.LabelSelector{}})}, no: map[string]string{"a": "not a"},
		},
		"all":   {rule: Rule{OfRing("r", named(All))}, yes: []string{"a", "b"}, everybody: true},
		"names": {rule: Rule{OfRing("r", named("a", "b"))}, yes: []string{"a", "b"}, no: map[string]string{"c": "CaptureRing r names a, b, not c: add"}},
		"labels": {
			rule: Rule{OfRing("r", labelled("of-a"))}, yes: []string{"a"},
			no: map[string]string{"b": "names namespaces with labels team=of-a, not b", "unknown": "the labels of namespace unknown are not known: not yet"},
		},
		"names and labels": {rule: Rule{OfRing("r", both)}, yes: []string{"a", "b"}, no: map[string]string{"c": "names a and namespaces with labels team=of-b, not c"}},
		"a Cluster as its ring": {
			rule: OfCluster("c", nil, OfRing("r", named("a"))), yes: []string{"a"}, no: map[string]string{"b": "CaptureRing r names a, not b"},
		},
		"a Cluster is no wider than its ring": {
			rule: OfCluster("c", named("a", "b"), OfRing("r", named("a"))), yes: []string{"a"}, no: map[string]string{"b": "CaptureRing r names a, not b"},
		},
		"nor is one for all": {rule: OfCluster("c", named(All), OfRing("r", nil)), no: map[string]string{"a": "CaptureRing r names no namespace"}, nobody: "CaptureRing r"},
		"a Cluster is narrower": {
			rule: OfCluster("c", named("a"), OfRing("r", named(All))), yes: []string{"a"}, no: map[string]string{"b": "Cluster c names a, not b"},
		},
		"each of its rings": {
			rule: OfCluster("c", nil, OfRing("r", named("a", "b")), OfRing("s", labelled("of-b"))), yes: []string{"b"}, no: map[string]string{"a": "CaptureRing s"},
		},
		"rings with nothing in common": {
			rule: OfCluster("c", nil, OfRing("r", named("a")), OfRing("s", named("b"))), no: map[string]string{"a": "CaptureRing s", "b": "CaptureRing r"},
			nobody: "of CaptureRing r, CaptureRing s have no name in common",
		},
		"a Cluster of no ring": {rule: OfCluster("c", nil), no: map[string]string{"a": "no CaptureRing feeds it"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, namespace := range test.yes {
				assert.NoError(t, test.rule.Check(namespace, labelsOf), namespace)
			}
			for namespace, message := range test.no {
				assert.ErrorContains(t, test.rule.Check(namespace, labelsOf), message, namespace)
			}
			assert.Equal(t, test.everybody, test.rule.Everybody())
			if test.nobody == "" {
				assert.NoError(t, test.rule.Nobody())
			} else {
				assert.ErrorContains(t, test.rule.Nobody(), test.nobody)
			}
		})
	}
	assert.ErrorIs(t, Rule{OfRing("r", nil)}.Check("a", labelsOf), ErrNobody, "so that who is there already can be told from who is excluded")
}
