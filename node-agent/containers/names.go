// SPDX-License-Identifier: Apache-2.0

// Package containers has what consumers' containers get besides their queues: the names of the interfaces behind the
// packets' interface numbers, and a libpcap that supports ringcap.
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
	// maxNames is the number of lines that a file keeps, those of the newest interfaces.
	maxNames = 4096
	// inContainer is the path of the run folder for a consumer in a container.
	inContainer = "/run/ringcap"
)

// Names writes the names of interfaces, and the pods that they belong to, for consumers. It keeps those of interfaces
// that are gone. In an agent's run folder, <cluster>/interfaces/names has a line "<ifindex>\t<name>\t<namespace/pod>"
// for each interface that the cluster's queues get or got packets of. The pod is empty for other interfaces. Its
// methods except Mount are for one goroutine.
type Names struct {
	path string
	// written holds the content of each file, by cluster.
	written map[string][]byte
}

// NewNames makes Names in an agent's run folder.
func NewNames(runDir string) *Names { return &Names{path: runDir, written: map[string][]byte{}} }

// Mount returns the mount with which a container can read a cluster's names. It makes the folder, because containers
// do not start without it.
func (n *Names) Mount(cluster string) (capture.PathPair, error) {
	return capture.PathPair{Host: n.of(cluster), Container: filepath.Join(inContainer, cluster, namesFolder)}, os.MkdirAll(n.of(cluster), 0o755)
}

func (n *Names) of(cluster string) string { return filepath.Join(n.path, cluster, namesFolder) }

// Write adds the names in a plan to the existing ones, and removes the files of clusters that are no longer planned.
// It is called before the plan is applied, so that names are there before packets are.
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

// RemoveAll removes the files of all clusters, including those of earlier agents.
func (n *Names) RemoveAll() error {
	found, err := filepath.Glob(filepath.Join(n.path, "*", namesFolder))
	errs := []error{err}
	for _, folder := range found {
		errs = append(errs, os.RemoveAll(folder))
		_ = os.Remove(filepath.Dir(folder))
	}
	return errors.Join(errs...)
}

// namesOf returns a cluster's lines by ifindex.
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
		// This is the file of an earlier agent. Without it, this agent begins with an empty one.
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

// mergeNames adds lines to a file's text. If an interface is in both, the new line replaces the old one.
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
			// Its pod was known, but is not known at the moment.
			continue
		}
		all[index] = line
	}
	indexes := slices.Sorted(maps.Keys(all))
	// The kernel counts indexes up.
	var text bytes.Buffer
	for _, index := range indexes[max(len(indexes)-maxNames, 0):] {
		fmt.Fprintf(&text, "%d\t%s\n", index, all[index])
	}
	return text.Bytes()
}
