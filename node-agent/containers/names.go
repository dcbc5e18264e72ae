// SPDX-License-Identifier: Apache-2.0

// Package containers has what consumers' containers are given besides their queues: the names of the interfaces that packets
// carry the numbers of, and a libpcap that knows ringcap.
package containers

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/node"
	"github.com/ringcap/ringcap/node-agent/plan"
)

const (
	namesFolder = "interfaces"
	namesFile   = "names"
	// maxNames are the lines that a file keeps, of those the newest interfaces.
	maxNames = 4096
	// inContainer is where the run folder is for a consumer in a container.
	inContainer = "/run/ringcap"
)

// Names writes the names of interfaces, and the pods that they belong to, for consumers, also of interfaces that are gone. In an
// agent's run folder <cluster>/interfaces/names has a line "<ifindex>\t<name>\t<namespace/pod>" for each
// interface that the cluster's queues get or got packets of; the pod is empty for other interfaces. Its methods but Mount are
// for one goroutine.
type Names struct {
	path string
	// written is what is in each file, by cluster.
	written map[string][]byte
}

// NewNames makes Names in an agent's run folder.
func NewNames(runDir string) *Names { return &Names{path: runDir, written: map[string][]byte{}} }

// Mount is what a container must be given to read a cluster's names. It makes the folder, for containers do not start
// without it.
func (n *Names) Mount(cluster string) (capture.PathPair, error) {
	return capture.PathPair{Host: n.of(cluster), Container: filepath.Join(inContainer, cluster, namesFolder)}, os.MkdirAll(n.of(cluster), 0o755)
}

func (n *Names) of(cluster string) string { return filepath.Join(n.path, cluster, namesFolder) }

// Write writes the names that a plan knows beside those that are there, and removes the files of clusters that are not
// planned any more. It comes before the plan is applied: names are there before packets are.
func (n *Names) Write(p plan.Result) error {
	var errs []error
	for _, planned := range p.Plans {
		for _, cluster := range planned.Clusters {
			errs = append(errs, n.write(cluster.Name, namesOf(cluster.Name, planned, p.Rings)))
		}
	}
	for _, cluster := range slices.Sorted(maps.Keys(n.written)) {
		if _, asked := p.Clusters[cluster]; !asked {
			errs = append(errs, os.RemoveAll(n.of(cluster)))
			delete(n.written, cluster)
			// The folder is empty once the engine has removed its own files.
			_ = os.Remove(filepath.Dir(n.of(cluster)))
		}
	}
	return errors.Join(errs...)
}

// RemoveAll removes the files of all clusters, also those of earlier agents.
func (n *Names) RemoveAll() error {
	found, err := filepath.Glob(filepath.Join(n.path, "*", namesFolder))
	errs := []error{err}
	for _, folder := range found {
		errs = append(errs, os.RemoveAll(folder))
		_ = os.Remove(filepath.Dir(folder))
	}
	return errors.Join(errs...)
}

// namesOf are a cluster's lines by ifindex.
func namesOf(cluster string, planned capture.Plan, rings map[string]plan.Verdict) map[int]string {
	lines := map[int]string{}
	for _, ring := range planned.Rings {
		if !slices.Contains(ring.Outputs, cluster) {
			continue
		}
		for _, tap := range ring.Taps {
			pod := rings[ring.Name].Pods[tap.Interface]
			if _, known := lines[tap.Index]; !known || pod != "" {
				lines[tap.Index] = tap.Interface + "\t" + pod
			}
		}
	}
	return lines
}

func (n *Names) write(cluster string, lines map[int]string) error {
	path := filepath.Join(n.of(cluster), namesFile)
	old, known := n.written[cluster]
	if !known {
		// The file of an earlier agent; without it this agent begins with an empty one.
		old, _ = os.ReadFile(path)
	}
	text := mergeNames(old, lines)
	if have, err := os.ReadFile(path); known && err == nil && bytes.Equal(text, have) {
		return nil
	}
	if err := node.WriteFile(path, text); err != nil {
		return fmt.Errorf("write the names of interfaces for the consumers of %s: %w", cluster, err)
	}
	n.written[cluster] = text
	return nil
}

// mergeNames adds lines to a file's text; an interface that is in both is the new one.
func mergeNames(old []byte, lines map[int]string) []byte {
	all := map[int]string{}
	for line := range strings.Lines(string(old)) {
		var index int
		number, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if _, err := fmt.Sscanf(number, "%d", &index); err == nil {
			all[index] = rest
		}
	}
	for index, line := range lines {
		if _, pod, _ := strings.Cut(line, "\t"); pod == "" && strings.HasPrefix(all[index], line) {
			// Which pod's it is was known, and is not at the moment.
			continue
		}
		all[index] = line
	}
	indexes := slices.Sorted(maps.Keys(all))
	// The kernel counts up.
	var text bytes.Buffer
	for _, index := range indexes[max(len(indexes)-maxNames, 0):] {
		fmt.Fprintf(&text, "%d\t%s\n", index, all[index])
	}
	return text.Bytes()
}
