// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"errors"
	"fmt"
)

// Settings holds an interface's values, by tunable. They are set again under another driver of the same hardware.
type Settings map[string]string

// copied reports whether a tunable's value means the same under another driver. The caller sets the link, and the
// threads are different ones then.
func copied(t tunable) bool { return t.stage != stageLink && t.stage != stagePlacement }

// ReadSettings reads all settings that the driver has.
func ReadSettings(sys, dev string) (Settings, error) {
	settings := Settings{}
	for _, t := range kernelTunables(sys) {
		if !copied(t) {
			continue
		}
		value, err := t.read(dev)
		switch {
		case err == nil:
			settings[t.name] = value
		case !errors.Is(err, errNotSupported):
			return nil, fmt.Errorf("read %s of %s: %w", t.name, dev, err)
		}
	}
	return settings, nil
}

// WriteSettings sets the values that differ. The error names everything that could not be set. All others are set.
func WriteSettings(sys, dev string, settings Settings) error {
	var errs []error
	for _, t := range kernelTunables(sys) {
		value, ok := settings[t.name]
		if !ok || !copied(t) {
			continue
		}
		have, err := t.read(dev)
		if err == nil && have != value {
			err = t.write(dev, value)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", t.name, shorten(value), err))
		}
	}
	return errors.Join(errs...)
}
