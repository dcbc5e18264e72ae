// SPDX-License-Identifier: Apache-2.0

package deviceplugin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"time"

	"tags.cncf.io/container-device-interface/pkg/parser"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/node"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// The kind of all queues. It does not contain the ring's name, which can begin with a digit. Classes of devices
// cannot.
const (
	cdiVendor = "ringcap.io"
	cdiClass  = "queue"
)

// cdiName returns the name by which container runtimes know a queue: ringcap.io/queue=NAME.NUMBER.
func cdiName(id capture.QueueID) string {
	return parser.QualifiedName(cdiVendor, cdiClass, cdiDevice(id))
}

func cdiDevice(id capture.QueueID) string { return fmt.Sprintf("%s.%d", id.Cluster, id.Queue) }

// cdiSpecs are the files that describe queues to container runtimes (Container Device Interface), one for each
// resource. Its methods may be called at the same time.
type cdiSpecs struct {
	folder string
	mu     sync.Mutex
	// written holds the inputs of the written files, by resource.
	written map[string]cdiFile
}

// cdiFile is a file as it was written.
type cdiFile struct {
	cdiSource
	size     int64
	modified time.Time
}

// untouched reports whether the file is as it was written.
func (f cdiFile) untouched(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() == f.size && info.ModTime().Equal(f.modified)
}

// cdiSource holds what a resource's file depends on.
type cdiSource struct {
	queues int
	engine v1.Engine
	mounts []capture.PathPair
}

func (c *cdiSpecs) path(resource string) string {
	return filepath.Join(c.folder, cdiVendor+"-"+resource+".json")
}

// set writes a resource's file, unless the file is up to date and nobody has touched it.
func (c *cdiSpecs) set(name string, resource Resource) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	source := cdiSource{len(resource.Healthy), resource.Engine, resource.Mounts}
	if last, ok := c.written[name]; ok && reflect.DeepEqual(last.cdiSource, source) && last.untouched(c.path(name)) {
		return nil
	}
	spec, err := cdiSpec(name, resource)
	if err == nil {
		err = node.WriteJSON(c.path(name), spec)
	}
	var info os.FileInfo
	if err == nil {
		info, err = os.Stat(c.path(name))
	}
	if err != nil {
		return fmt.Errorf("describe the queues of %s to container runtimes: %w", name, err)
	}
	c.written[name] = cdiFile{source, info.Size(), info.ModTime()}
	return nil
}

// again writes a resource's file without a change. Container runtimes then read it, with the numbers of device nodes.
func (c *cdiSpecs) again(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	text, err := os.ReadFile(c.path(name))
	if err == nil {
		err = node.WriteFile(c.path(name), text)
	}
	if err != nil {
		return fmt.Errorf("write a queue's new device number for container runtimes: %w", err)
	}
	return nil
}

// keep removes the files of resources that are not wanted, including those of an earlier process.
func (c *cdiSpecs) keep(wanted map[string]Resource) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	files, err := filepath.Glob(c.path("*"))
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), cdiVendor+"-"), ".json")
		if _, still := wanted[name]; still {
			continue
		}
		delete(c.written, name)
		if problem := os.Remove(file); problem != nil && !errors.Is(problem, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("remove the description of queues that are gone: %w", problem))
		}
	}
	return err
}

// A queue stays with its pod when containers restart, and so do packets that they have not read: see ringcap_open(3).
// The variable is in the answer to the kubelet, for runtimes without CDI. It is also in the CDI description, for pods
// that got their queues from an earlier agent. A value that the pod itself sets wins. The kubelet lets it win over
// the answer. It also wins over the description, which runtimes apply last, because the variable has another name
// there.
const (
	unreadName    = "RINGCAP_UNREAD"
	unreadDefault = "RINGCAP_UNREAD_DEFAULT"
	unreadTaken   = "take"
)

func cdiSpec(name string, resource Resource) (*specs.Spec, error) {
	engine, err := resource.engine()
	if err != nil {
		return nil, err
	}
	spec := &specs.Spec{Kind: cdiVendor + "/" + cdiClass}
	for i := range resource.Healthy {
		id := capture.QueueID{Cluster: name, Queue: i}
		grant, err := engine.Grant(id)
		if err != nil {
			return nil, err
		}
		edits := specs.ContainerEdits{Env: []string{unreadDefault + "=" + unreadTaken}}
		for _, d := range grant.Devices {
			edits.DeviceNodes = append(edits.DeviceNodes, &specs.DeviceNode{HostPath: d.Host, Path: d.Container, Permissions: "rw"})
		}
		for _, m := range append(grant.Mounts, resource.Mounts...) {
			edits.Mounts = append(edits.Mounts, &specs.Mount{HostPath: m.Host, ContainerPath: m.Container, Options: []string{"ro", "bind"}})
		}
		spec.Devices = append(spec.Devices, specs.Device{Name: cdiDevice(id), ContainerEdits: edits})
	}
	spec.Version, err = specs.MinimumRequiredVersion(spec)
	return spec, err
}
