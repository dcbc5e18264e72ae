// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/net/bpf"

	"github.com/ringcap/ringcap/filter"
	"github.com/ringcap/ringcap/node-agent/node"
)

//go:embed bpf/ringcap.bpf.o
var objectFile []byte

const (
	maxOutputs      = len(programConfig{}.Outputs)
	maxTables       = maxOutputs + len(programConfig{}.Targets)
	ingressProgram  = "ringcap_ingress"
	egressProgram   = "ringcap_egress"
	xdpProgram      = "ringcap_xdp"
	configVariable  = "config"
	ringCountersMap = ".data.counters"
	attachedMap     = ".data.attached"
	clockMap        = ".data.clock"
	unattendedMap   = ".data.unattended"
	shuntingMap     = ".data.shunting"
	patternRowsMap  = "ring_pattern_rows"
	constantsMap    = ".rodata.constants"
	operandsMap     = ".rodata.operands"
)

// filterSymbols holds the placeholders for filters, by program.
var filterSymbols = map[string]string{
	ingressProgram: "ringcap_filter", egressProgram: "ringcap_filter", xdpProgram: "ringcap_xdp_filter",
}

// directPrograms holds the programs of rings whose queues are reached directly, by the name of those that they replace.
var directPrograms = map[string]string{
	ingressProgram: "ringcap_direct_ingress", egressProgram: "ringcap_direct_egress",
}

// chooseDirect makes the programs those of rings whose queues are reached directly, or of all others.
func chooseDirect(spec *ebpf.CollectionSpec, direct bool) {
	for name, directName := range directPrograms {
		if direct {
			spec.Programs[name] = spec.Programs[directName]
			spec.Programs[name].Name = name
		}
		delete(spec.Programs, directName)
	}
}

// loadSpec returns what the embedded object has, adapted to this machine. The caller may change it.
func loadSpec() (*ebpf.CollectionSpec, error) {
	spec, err := readObject()
	return spec.Copy(), err
}

// readObject reads the object once, because that takes as long as the kernel takes to verify a program.
var readObject = sync.OnceValues(func() (*ebpf.CollectionSpec, error) {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(objectFile))
	if err != nil {
		return nil, fmt.Errorf("read the eBPF object in this binary: %w", err)
	}
	cpus, err := node.PossibleCPUs()
	if err != nil {
		return nil, err
	}
	spec.Maps[scratchMap].MaxEntries = uint32(cpus)
	sizeSection(spec.Maps[ringCountersMap], "rc_counters", cpuSlots(cpus))
	sizeSection(spec.Maps[attachedMap], "rc_attached", maxNodeQueues)
	sizeSection(spec.Maps[clockMap], "rc_clock", 1)
	sizeSection(spec.Maps[unattendedMap], "rc_unattended", maxNodeQueues*min(cpuSlots(cpus), unattendedCPUs))
	sizeSection(spec.Maps[shuntingMap], "rc_shunting", maxNodeQueues)
	spec.Maps[attachedMap].Flags |= mmapable
	spec.Maps[shuntingMap].Flags |= mmapable
	spec.Maps[unattendedMap].Flags |= mmapable
	spec.Maps["rc_doorbells"].InnerMap.MaxEntries = uint32(os.Getpagesize())
	return spec, nil
})

// sizeSection sets the number of elements of a section's map, which has one in the object.
func sizeSection(spec *ebpf.MapSpec, name string, elements uint32) {
	spec.ValueSize *= elements
	spec.Name, spec.Key, spec.Value = name, nil, nil
	spec.Contents = []ebpf.MapKV{{Key: uint32(0), Value: zeroes()[:spec.ValueSize]}}
}

// zeroes has the length of the largest section. Nobody writes to it.
var zeroes = sync.OnceValue(func() []byte {
	unattended := 8 * maxNodeQueues * min(cpuSlots(possibleCPUs()), unattendedCPUs)
	return make([]byte, max(int(unattended), maxNodeQueues*int(unsafe.Sizeof(shuntingState{}))))
})

// ringProgram is the program of a ring's taps.
type ringProgram struct {
	config programConfig
	filter []bpf.RawInstruction
	// maps names the contents of the ring's maps: its rules, the receive queues that it captures by interface, and
	// whether it remembers fragments.
	maps      string
	rules     *ruleSet
	rxQueues  map[uint32]rxQueueBits
	fragments bool
	// direct holds the queues that the program reaches without a look-up.
	direct []directQueue
	// targetBases holds the first indexes of the clusters that rules name.
	targetBases []uint32
	// tables holds the clusters' own tables, by the number of the output. The targets follow the outputs. Unused
	// entries are nil.
	tables [maxTables]*ebpf.Map
}

// tableMap returns the name in the object of the table of an output or target.
func tableMap(number int) string { return fmt.Sprintf("table_%d", number) }

// bases returns the first indexes of the clusters that the program feeds.
func (p ringProgram) bases() []uint32 {
	bases := slices.Clone(p.targetBases)
	for _, output := range p.config.Outputs[:p.config.NrOutputs] {
		bases = append(bases, output.Base)
	}
	return bases
}

// fingerprint names the program by everything that it was made from, including this binary's object. So a newer agent
// replaces the program with its own.
func (p ringProgram) fingerprint() (string, error) {
	hash := sha256.New()
	hash.Write(objectFile)
	for _, part := range []any{p.config, []byte(p.maps), uint32(len(p.filter)), p.filter, p.directIDs()} {
		if err := binary.Write(hash, binary.LittleEndian, part); err != nil {
			return "", fmt.Errorf("encode the program's configuration: %w", err)
		}
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// load loads the program into the kernel, once for each kind of hook among the points. The caller closes the
// programs. They are not complete if they reach their queues by the tables only because the maps could not be opened.
func (p ringProgram) load(env *environment, counters *ebpf.Map, maps *ringMaps, points []tapPoint) (all programs, complete bool, err error) {
	spec, err := loadSpec()
	if err != nil {
		return nil, false, err
	}
	direct, complete := p.openDirect()
	defer direct.close()
	tables := env.tables
	chooseDirect(spec, direct[0].id != 0)
	wanted := map[string]bool{}
	for _, point := range points {
		wanted[point.Hook.program()] = true
	}
	for name, program := range spec.Programs {
		if !wanted[name] {
			delete(spec.Programs, name)
		} else if program.Instructions, err = replaceFilter(program.Instructions, name, p.filter); err != nil {
			return nil, false, err
		}
	}
	if err := spec.Variables[configVariable].Set(p.config); err != nil {
		return nil, false, fmt.Errorf("configure the eBPF program: %w", err)
	}
	replacements := tables.byName()
	replacements[ringCountersMap] = counters
	constants := p.constants(direct)
	constants["tc_next"] = env.tcNext()
	if err := maps.learntConstants(constants); err != nil {
		return nil, false, err
	}
	if err := setConstants(spec, constants); err != nil {
		return nil, false, err
	}
	if err := direct.place(spec, replacements, tables); err != nil {
		return nil, false, err
	}
	for i, table := range p.tables {
		if table == nil {
			table = tables.none
		}
		replacements[tableMap(i)] = table
		spec.Maps[tableMap(i)].MaxEntries = table.MaxEntries()
	}
	for name, m := range maps.maps {
		replacements[name] = m
		spec.Maps[name].MaxEntries, spec.Maps[name].ValueSize = m.MaxEntries(), m.ValueSize()
	}
	loaded, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: replacements})
	if err != nil {
		return nil, false, fmt.Errorf("load the eBPF program: %w", explainLoad(err))
	}
	defer loaded.Close()
	all = programs{}
	for name := range wanted {
		all[name] = loaded.DetachProgram(name)
	}
	return all, complete, nil
}

// programs holds a ring's loaded programs, by name.
type programs map[string]*ebpf.Program

// program returns the name of the program that runs at the hook.
func (h hook) program() string {
	switch {
	case h.isXDP():
		return xdpProgram
	case h == hookEgress:
		return egressProgram
	default:
		return ingressProgram
	}
}

func (p programs) forHook(h hook) *ebpf.Program { return p[h.program()] }

func (p programs) close() {
	for _, program := range p {
		program.Close()
	}
}

// replaceFilter replaces the object's placeholder by a translated filter. An empty filter leaves the placeholder.
func replaceFilter(program asm.Instructions, name string, raw []bpf.RawInstruction) (asm.Instructions, error) {
	if len(raw) == 0 {
		return program, nil
	}
	translate, filterSymbol := filter.EBPF, filterSymbols[name]
	if name == xdpProgram {
		translate = filter.XDP
	}
	translated, err := translate(raw)
	if err != nil {
		return nil, fmt.Errorf("translate the filter to eBPF: %w", err)
	}
	start := -1
	end := len(program)
	for i := range program {
		symbol := program[i].Symbol()
		if symbol == filterSymbol {
			start = i
		} else if start >= 0 && symbol != "" {
			end = i
			break
		}
	}
	if start < 0 {
		return nil, fmt.Errorf("the eBPF object has no function %s", filterSymbol)
	}
	// The first instruction's metadata has the symbol and the function's type. From these the kernel knows where
	// functions begin.
	translated[0].Metadata = program[start].Metadata
	replaced := make(asm.Instructions, 0, len(program)+len(translated))
	replaced = append(replaced, program[:start]...)
	replaced = append(replaced, translated...)
	return append(replaced, program[end:]...), nil
}

// verifierTail is how many of the last lines of the verifier's log an error carries. They have the complaint, without
// the steps that led to it.
const verifierTail = 8

// explainLoad shortens a verifier's log and adds advice for missing rights.
func explainLoad(err error) error {
	var verifier *ebpf.VerifierError
	if errors.As(err, &verifier) {
		lines := verifier.Log
		if len(lines) > verifierTail {
			lines = lines[len(lines)-verifierTail:]
		}
		err = fmt.Errorf("the kernel's verifier refused it: %w: %s", verifier.Unwrap(), strings.Join(lines, "; "))
	}
	return explainRights(err)
}
