// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// ring is a named capture with its taps. The exported fields are its pinned description.
type ring struct {
	Name string
	// Fingerprint names the program that all its taps run. It is empty while they are being changed.
	Fingerprint string
	// Taps lists where the ring has taps, or is about to have them.
	Taps []tapPoint
	// Outputs and SnapLen are those of the plan. The consumers of its clusters get them.
	Outputs []string
	SnapLen uint32
	// Bases holds the first indexes of the clusters that its programs may feed, before and after a change in
	// progress.
	Bases []uint32

	// Maps names the folder with the maps of the rule set.
	Maps string

	folder   string
	counters *ebpf.Map
	maps     *ringMaps
	taps     map[tapPoint]tap
}

// tapPoint is a hook of an interface.
type tapPoint struct {
	Index int
	Hook  hook
}

// hook is a point at an interface where the kernel runs programs.
type hook string

const (
	hookIngress hook = "rx"
	hookEgress  hook = "tx"
	// hookXDP is native XDP. hookXDPAny is generic XDP where there is no native XDP.
	hookXDP    hook = "xdp"
	hookXDPAny hook = "xdpany"
)

func (h hook) isXDP() bool { return h == hookXDP || h == hookXDPAny }

func (h hook) direction() capture.Direction {
	if h == hookEgress {
		return capture.Transmit
	}
	return capture.Receive
}

// tapPoints returns where a planned ring's taps go, in order.
func tapPoints(planned capture.Ring) []tapPoint {
	hooks := []hook{hookIngress, hookEgress}
	if planned.Mode != 0 {
		hooks = []hook{hookXDP}
		if planned.XDP == capture.XDPGenericAllowed {
			hooks = []hook{hookXDPAny}
		}
	}
	seen := map[tapPoint]bool{}
	var points []tapPoint
	for _, t := range planned.Taps {
		for _, h := range hooks {
			point := tapPoint{Index: t.Index, Hook: h}
			if t.Direction&h.direction() != 0 && !seen[point] {
				seen[point] = true
				points = append(points, point)
			}
		}
	}
	return points
}

func (r *ring) describe() error {
	return writeDescription(filepath.Join(r.folder, "description"), r)
}

// newRing makes a ring without taps.
func newRing(name string, env *environment) (*ring, error) {
	r := &ring{Name: name, folder: env.pins.ring(name), taps: map[tapPoint]tap{}}
	if err := os.Mkdir(r.folder, 0o700); err != nil {
		return nil, fmt.Errorf("make %s in the bpffs: %w", r.folder, explainRights(err))
	}
	counters, err := newPinned(env.countersSpec, filepath.Join(r.folder, "counters"))
	if err == nil {
		r.counters = counters
		err = r.describe()
	}
	if err != nil {
		return nil, errors.Join(err, r.remove())
	}
	return r, nil
}

// recoverRing opens a ring that another process made. The error wraps os.ErrNotExist if that process did not complete
// it.
func recoverRing(folder string, env *environment) (*ring, error) {
	r := &ring{folder: folder, taps: map[tapPoint]tap{}}
	if err := readDescription(filepath.Join(folder, "description"), r); err != nil {
		return nil, err
	}
	if pinName(r.Name) != filepath.Base(folder) {
		return nil, fmt.Errorf("%s: %w", folder, errNotDescription)
	}
	var err error
	if r.counters, err = ebpf.LoadPinnedMap(filepath.Join(folder, "counters"), nil); err != nil {
		return nil, fmt.Errorf("open %s/counters: %w", folder, err)
	}
	if err := r.recoverMaps(); err != nil {
		r.close()
		return nil, err
	}
	for _, point := range r.Taps {
		t, err := env.attacher.recover(r, point)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			r.close()
			return nil, fmt.Errorf("tap %s of interface %d: %w", point.Hook, point.Index, err)
		}
		r.taps[point] = t
	}
	return r, nil
}

// recoverMaps opens the maps of the active rule set.
func (r *ring) recoverMaps() error {
	if err := r.removeOtherMaps(); err != nil || r.Maps == "" {
		return err
	}
	maps, err := recoverRingMaps(filepath.Join(r.folder, r.Maps))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, errNotDescription) {
		// The next plan makes them, with another program.
		r.Maps, r.Fingerprint = "", ""
		return nil
	}
	if err == nil {
		r.maps = maps
	}
	return err
}

// removeOtherMaps unpins the maps of inactive rule sets: of the previous one, and of changes that did not complete.
func (r *ring) removeOtherMaps() error {
	folders, err := filepath.Glob(filepath.Join(r.folder, "rules_*"))
	for _, folder := range folders {
		if filepath.Base(folder) != r.Maps {
			err = errors.Join(err, removePins(folder))
		}
	}
	return err
}

// ensure makes the ring's taps those of the points, with the program. It does not touch taps that already run it. If
// the program cannot be loaded, nothing changes.
func (r *ring) ensure(program ringProgram, points []tapPoint, env *environment) error {
	fingerprint, err := program.fingerprint()
	if err != nil {
		return err
	}
	if r.maps != nil && r.Maps == program.maps {
		r.maps.know(program.rules) // an earlier process did not store this
	}
	missing, surplus := r.difference(points)
	changed := fingerprint != r.Fingerprint
	if len(missing) == 0 && len(surplus) == 0 && !changed {
		return nil
	}
	maps, err := r.openMaps(program)
	if err != nil {
		return err
	}
	before := r.maps
	defer func() {
		for _, m := range []*ringMaps{before, maps} {
			if m != r.maps {
				m.close()
			}
		}
	}()
	var loaded programs
	complete := true
	if len(missing) > 0 || changed && len(points) > 0 {
		if loaded, complete, err = program.load(env, r.counters, maps, points); err != nil {
			return errors.Join(err, r.removeOtherMaps())
		}
		defer loaded.close()
	}
	if !complete {
		fingerprint = "" // the next plan loads it again, also if this process is killed from here on
	}
	bases := program.bases()
	if err := r.recordPending(points, fingerprint, bases); err != nil {
		return err
	}
	for _, point := range surplus {
		err = errors.Join(err, r.detach(point))
	}
	if err == nil && changed {
		err = r.swap(loaded)
	}
	if err != nil {
		return err
	}
	r.Fingerprint, r.Bases, r.Taps = fingerprint, bases, points
	r.maps, r.Maps = maps, program.maps
	return errors.Join(r.attach(missing, loaded, env), r.describe(), r.removeOtherMaps())
}

// openMaps returns the maps for a program's rules. If the existing maps are for the same rules, it returns these.
func (r *ring) openMaps(program ringProgram) (*ringMaps, error) {
	if r.maps != nil && r.Maps == program.maps {
		return r.maps, nil
	}
	return openRingMaps(filepath.Join(r.folder, program.maps), program.rules, program.rxQueues, program.fragments)
}

// attach makes taps at the points. A failure at one point does not keep it from the others.
func (r *ring) attach(points []tapPoint, loaded programs, env *environment) error {
	var failed error
	for _, point := range points {
		t, err := env.attacher.attach(r, point, loaded.forHook(point.Hook))
		if errors.Is(err, errTaken) {
			err = explainTaken(point, env.rings)
		}
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		r.taps[point] = t
	}
	return failed
}

// difference returns the points without a working tap, and the points with a surplus tap.
func (r *ring) difference(points []tapPoint) (missing, surplus []tapPoint) {
	wanted := map[tapPoint]bool{}
	for _, point := range points {
		wanted[point] = true
		if t, ok := r.taps[point]; !ok || !t.alive() {
			missing = append(missing, point)
		}
	}
	for point, t := range r.taps {
		if !wanted[point] || !t.alive() {
			surplus = append(surplus, point)
		}
	}
	return missing, surplus
}

// recordPending records where taps may be from now on. It clears the fingerprint when the program is about to change.
func (r *ring) recordPending(points []tapPoint, fingerprint string, bases []uint32) error {
	r.Taps = append(r.Taps, points...)
	r.Bases = append(r.Bases, bases...)
	if fingerprint != r.Fingerprint {
		r.Fingerprint = ""
	}
	return r.describe()
}

// swap replaces the running programs, each atomically.
func (r *ring) swap(loaded programs) error {
	for point, t := range r.taps {
		if err := t.update(loaded.forHook(point.Hook)); err != nil {
			return fmt.Errorf("swap the program of tap %s on %s: %w", point.Hook, interfaceName(point.Index), err)
		}
	}
	return nil
}

func (r *ring) detach(point tapPoint) error {
	if err := r.taps[point].detach(); err != nil {
		return fmt.Errorf("remove tap %s from %s: %w", point.Hook, interfaceName(point.Index), err)
	}
	delete(r.taps, point)
	return nil
}

// remove detaches the taps and unpins the ring.
func (r *ring) remove() error {
	var failed error
	for point := range r.taps {
		failed = errors.Join(failed, r.detach(point))
	}
	if failed != nil {
		return failed
	}
	r.close()
	return removePins(r.folder)
}

func (r *ring) close() {
	for _, t := range r.taps {
		t.close()
	}
	if r.counters != nil {
		r.counters.Close()
		r.counters = nil
	}
	if r.maps != nil {
		r.maps.close()
		r.maps = nil
	}
}

// tapsInPlace returns the working taps. It combines both hooks of an interface into one tap.
func (r *ring) tapsInPlace() []capture.Tap {
	byIndex := map[int]capture.Direction{}
	for point, t := range r.taps {
		if t.alive() {
			byIndex[point.Index] |= point.Hook.direction()
		}
	}
	taps := make([]capture.Tap, 0, len(byIndex))
	for index, direction := range byIndex {
		taps = append(taps, capture.Tap{Interface: interfaceName(index), Index: index, Direction: direction})
	}
	sort.Slice(taps, func(i, j int) bool { return taps[i].Index < taps[j].Index })
	return taps
}

// feeds reports whether a program of the ring may put packets into the cluster's queues.
func (r *ring) feeds(c *cluster) bool {
	for _, base := range r.Bases {
		if base == c.Base {
			return true
		}
	}
	return false
}

// filterName returns the name of a tap's program in the lists of tc.
func filterName(ringName string, h hook) string {
	return strings.Join([]string{"ringcap", ringName, string(h)}, ":")
}
