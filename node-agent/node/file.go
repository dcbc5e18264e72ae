// SPDX-License-Identifier: Apache-2.0

package node

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// WriteJSON writes value to a file in one step. A reader, or a crash, finds the old content or the new.
func WriteJSON(path string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	return WriteFile(path, append(text, '\n'))
}

// WriteFile writes a file in one step, readable for all users. It makes its folder if that is missing.
func WriteFile(path string, content []byte) error { return writeFile(path, content, 0o644) }

// WritePrivateFile is WriteFile for a file that only the owner may read.
func WritePrivateFile(path string, content []byte) error { return writeFile(path, content, 0o600) }

// Unfinished returns the path at which the next content of a file is written. If a process is killed, the next one
// overwrites what it left there.
func Unfinished(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
}

func writeFile(path string, content []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	fresh := Unfinished(path)
	temporary, err := os.OpenFile(fresh, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(fresh)
	_, err = temporary.Write(content)
	if err == nil {
		err = temporary.Chmod(mode)
	}
	if err == nil {
		err = temporary.Sync()
	}
	if closeErr := temporary.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(temporary.Name(), path)
}

// ReadJSON reads a file that WriteJSON wrote. The error is os.ErrNotExist (wrapped) if there is none.
func ReadJSON(path string, value any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, value); err != nil {
		return fmt.Errorf("decode %s: %w", path, err)
	}
	return nil
}
