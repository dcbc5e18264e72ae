// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// Records are kept in a file, by key. They describe what was changed on this machine and must be restored. They are
// valid for one boot, because a boot undoes all changes. With an empty BootID they stay valid over boots. Only root
// can read the file.
type Records[T any] struct {
	Path, BootID string

	// last is the file's content when it was last read or written here; nil before that.
	last []byte
}

// recordsFile is the content of the file.
type recordsFile[T any] struct {
	BootID  string       `json:"bootID"`
	Records map[string]T `json:"records"`
}

// Load returns what this process saved last, even if the file was changed since. Otherwise it returns what an earlier
// process of this boot saved.
func (r *Records[T]) Load() (map[string]T, error) {
	if r.last == nil {
		text, err := os.ReadFile(r.Path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("read the record of changes: %w", err)
		}
		r.last = append([]byte{}, text...)
	}
	var file recordsFile[T]
	if len(r.last) > 0 {
		if err := json.Unmarshal(r.last, &file); err != nil {
			r.last = nil
			return nil, fmt.Errorf("read the record of changes: decode %s: %w", r.Path, err)
		}
	}
	if file.BootID != r.BootID || file.Records == nil {
		return map[string]T{}, nil
	}
	return file.Records, nil
}

// Save writes the records, unless the file already has them. Without records there is no file.
func (r *Records[T]) Save(records map[string]T) error {
	if len(records) == 0 {
		r.last = []byte{}
		if err := os.Remove(r.Path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	text, err := json.Marshal(recordsFile[T]{r.BootID, records})
	if err != nil {
		return fmt.Errorf("encode the record of changes: %w", err)
	}
	text = append(text, '\n')
	if have, err := os.ReadFile(r.Path); err != nil || !bytes.Equal(have, text) {
		if err := WritePrivateFile(r.Path, text); err != nil {
			return fmt.Errorf("write the record of changes: %w", err)
		}
	}
	r.last = text
	return nil
}
