// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"os"
)

// Records are kept in a file, by key, of what was changed on this machine and is to be put back. They hold for one boot: those
// of another are void, for a boot undoes all of it.
type Records[T any] struct {
	Path, BootID string
}

// recordsFile is its content.
type recordsFile[T any] struct {
	BootID  string       `json:"bootID"`
	Records map[string]T `json:"records"`
}

// Load returns them; never nil but with an error.
func (r Records[T]) Load() (map[string]T, error) {
	var file recordsFile[T]
	if err := ReadJSON(r.Path, &file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read what was changed: %w", err)
	}
	if file.BootID != r.BootID || file.Records == nil {
		return map[string]T{}, nil
	}
	return file.Records, nil
}

// Save writes them in one step; without any there is no file.
func (r Records[T]) Save(records map[string]T) error {
	if len(records) == 0 {
		if err := os.Remove(r.Path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := WriteJSON(r.Path, recordsFile[T]{r.BootID, records}); err != nil {
		return fmt.Errorf("note what is changed: %w", err)
	}
	return nil
}
