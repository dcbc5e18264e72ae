// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"

	"github.com/ringcap/ringcap/node-agent/node"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Accepted keeps the specs that were accepted last on disk: a change that is refused leaves what was there, and the
// next agent has to know what that was. The zero Accepted keeps them in this process's memory. It is for one
// goroutine.
//
// They stay valid over a boot, because "until then it stays as it was before the change" is true after one, too: the
// specs are planned again, from the node as it is then. They belong to one node and, by the UIDs in them, to their
// objects.
//
//	                    written                              engines have
//	new object of S     S, before it is made                 S, if that is not cut short
//	plan accepts T      S until T is made, then T            T, if that is not cut short
//	plan refuses T      S                                    S
//	engine refuses T    S                                    S again
//	killed in between   S or T                               S, T or neither: the next agent tries T, and goes back to S if that is refused
type Accepted struct {
	// Records are stored by "ring/NAME" and "cluster/NAME".
	Records node.Records[json.RawMessage]
	// Node is the node's name; empty without Kubernetes.
	Node string

	spec   v1.NodeCaptureSpec
	loaded bool
	texts  map[string]acceptedText
}

// acceptedText is a record as it was written last. It is encoded again only if the object has changed: a ring may have
// thousands of rules.
type acceptedText struct {
	record acceptedRecord
	text   json.RawMessage
}

// acceptedVersion is the version of the record. New fields of specs need no new version. A record with a field that
// this agent does not know is not used. A missing field gets its default.
const acceptedVersion = 1

type acceptedRecord struct {
	Version int             `json:"version"`
	Node    string          `json:"node,omitempty"`
	Ring    *v1.NodeRing    `json:"ring,omitempty"`
	Cluster *v1.NodeCluster `json:"cluster,omitempty"`
}

// Load returns what this process or an earlier one saved last. It sets a file aside that cannot be read, and then
// nothing is known.
func (a *Accepted) Load() v1.NodeCaptureSpec {
	if a.loaded || a.Records.Path == "" {
		return a.spec
	}
	a.loaded = true
	records, err := a.Records.Load()
	if err != nil {
		aside := Aside(a.Records.Path)
		slog.Error("The last accepted specs cannot be read: a change that is refused now removes the object that it changed. The file is set aside",
			"error", errors.Join(err, os.Rename(a.Records.Path, aside)), "aside", aside)
	}
	for key, text := range records {
		if err := a.believe(text); err != nil {
			slog.Warn("A last accepted spec is ignored: if the object is changed and the change is refused, the object is removed", "of", key, "why", err)
		}
	}
	return a.spec
}

// Aside returns the path to which a file that cannot be read is moved.
func Aside(path string) string { return path + ".damaged" }

// believe adopts a record. It rejects unknown fields, because such a field could be one that keeps packets or pods
// out.
func (a *Accepted) believe(text []byte) error {
	var record acceptedRecord
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&record); err != nil {
		return fmt.Errorf("another version of the agent wrote it: %w", err)
	}
	switch {
	case record.Version != acceptedVersion:
		return fmt.Errorf("it is of version %d, and this agent knows %d", record.Version, acceptedVersion)
	case record.Node != a.Node:
		return fmt.Errorf("it is of node %q, and this is %q", record.Node, a.Node)
	}
	if record.Ring != nil {
		record.Ring.Spec.Default()
		a.spec.Rings = append(a.spec.Rings, *record.Ring)
	}
	if record.Cluster != nil {
		record.Cluster.Spec.Default()
		a.spec.Clusters = append(a.spec.Clusters, *record.Cluster)
	}
	return nil
}

// Save records the specs. This process uses them even if they cannot be written.
func (a *Accepted) Save(spec v1.NodeCaptureSpec) error {
	a.spec, a.loaded = spec, true
	if a.Records.Path == "" {
		return nil
	}
	texts := map[string]acceptedText{}
	for _, ring := range spec.Rings {
		if err := a.note(texts, "ring/"+ring.Name, acceptedRecord{Ring: &ring}); err != nil {
			return err
		}
	}
	for _, cluster := range spec.Clusters {
		if err := a.note(texts, "cluster/"+cluster.Name, acceptedRecord{Cluster: &cluster}); err != nil {
			return err
		}
	}
	a.texts = texts
	records := make(map[string]json.RawMessage, len(texts))
	for key, known := range texts {
		records[key] = known.text
	}
	if err := a.Records.Save(records); err != nil {
		return fmt.Errorf("write the accepted specs for the next agent: %w", err)
	}
	return nil
}

func (a *Accepted) note(texts map[string]acceptedText, key string, record acceptedRecord) error {
	record.Version, record.Node = acceptedVersion, a.Node
	known, ok := a.texts[key]
	if !ok || !reflect.DeepEqual(known.record, record) {
		text, err := json.Marshal(record)
		if err != nil {
			return fmt.Errorf("encode the accepted spec of %s: %w", key, err)
		}
		known = acceptedText{record, text}
	}
	texts[key] = known
	return nil
}
