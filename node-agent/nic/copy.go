// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"errors"
	"fmt"
)

// Settings are an interface's, by knob: what another driver of the same hardware shall have again.
type Settings map[string]string

// copied says whether a knob's value means the same under another driver: the link is its caller's, and the threads are
// others then.
func copied(k knob) bool { return k.stage != stageLink && k.stage != stagePlacement }

// ReadSettings reads all that the driver has.
func ReadSettings(sys, dev string) (Settings, error) {
	settings := Settings{}
	for _, k := range kernelKnobs(sys) {
		if !copied(k) {
			continue
		}
		value, err := k.read(dev)
		switch {
		case err == nil:
			settings[k.name] = value
		case !errors.Is(err, errNotSupported):
			return nil, fmt.Errorf("read %s of %s: %w", k.name, dev, err)
		}
	}
	return settings, nil
}

// WriteSettings sets what differs. The error names everything that could not be set; the rest is.
func WriteSettings(sys, dev string, settings Settings) error {
	var errs []error
	for _, k := range kernelKnobs(sys) {
		value, ok := settings[k.name]
		if !ok || !copied(k) {
			continue
		}
		have, err := k.read(dev)
		if err == nil && have != value {
			err = k.write(dev, value)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", k.name, shorten(value), err))
		}
	}
	return errors.Join(errs...)
}
