// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ringcap/ringcap/node-agent/node"
)

// Outcome is the loader's result for the module on this boot of this kernel. The agent, which starts after the
// loader, reads it.
type Outcome struct {
	node.Identity
	// Version of the loaded module; empty if none is loaded.
	Version string `json:"version,omitempty"`
	// SourceVersion identifies the exact build. Ours means that a loader loaded it.
	SourceVersion string `json:"sourceVersion,omitempty"`
	Ours          bool   `json:"ours,omitempty"`
	// Available is the image's module if it differs from the loaded one.
	Available string `json:"available,omitempty"`
	// Ready means that the module is loaded and compatible.
	Ready bool `json:"ready"`
	// Reason is one of the reasons of the condition ModuleReady. Message tells what to do.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// OutcomeFile is the outcome's file name in the run folder.
const OutcomeFile = "module.json"

func outcomeFile(runDir string) string { return filepath.Join(runDir, OutcomeFile) }

// Write stores the outcome below the run folder, in one step.
func (o Outcome) Write(runDir string) error {
	if err := node.WriteJSON(outcomeFile(runDir), o); err != nil {
		return fmt.Errorf("write the outcome of loading the module: %w", err)
	}
	return nil
}

// Read returns the loader's outcome of this boot and kernel. It returns false if there is none.
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
