// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ringcap/ringcap/node-agent/node"
)

// Outcome is what came of the module on this boot of this kernel, for the agent that starts after the loader.
type Outcome struct {
	node.Identity
	// Version of the module that is loaded; empty when none is.
	Version string `json:"version,omitempty"`
	// SourceVersion identifies the exact build. Ours: a loader loaded it.
	SourceVersion string `json:"sourceVersion,omitempty"`
	Ours          bool   `json:"ours,omitempty"`
	// Available is the image's module when it is another than the loaded one.
	Available string `json:"available,omitempty"`
	// Ready: the module is loaded and compatible.
	Ready bool `json:"ready"`
	// Reason is one of those of the condition ModuleReady; Message tells what to do.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// OutcomeFile is the outcome's name in the run folder.
const OutcomeFile = "module.json"

func outcomeFile(runDir string) string { return filepath.Join(runDir, OutcomeFile) }

// Write keeps the outcome below the run folder, in one step.
func (o Outcome) Write(runDir string) error {
	if err := node.WriteJSON(outcomeFile(runDir), o); err != nil {
		return fmt.Errorf("write the outcome of loading the module: %w", err)
	}
	return nil
}

// Read returns the loader's outcome of this boot and kernel; false when there is none.
func Read(runDir string, now node.Identity) (Outcome, bool, error) {
	var o Outcome
	if err := node.ReadJSON(outcomeFile(runDir), &o); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return Outcome{}, false, nil
		}
		return Outcome{}, false, err
	}
	return o, o.Identity == now, nil
}
