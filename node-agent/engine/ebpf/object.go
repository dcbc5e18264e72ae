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
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/net/bpf"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/filter"
)

//go:embed bpf/ringcap.bpf.o
var objectFile []byte

const (
	maxOutputs      = 8
	ingressProgram  = "ringcap_ingress"
	egressProgram   = "ringcap_egress"
	filterSymbol    = "ringcap_filter"
	configVariable  = "config"
	ringCountersMap = "ring_counters"
)

// outputConfig is struct output of ringcap.bpf.c.
type outputConfig struct {
	Base    uint32
	Queues  uint32
	Balance uint32
	_       uint32
	Key     [2]uint64
}

// programConfig is struct config of ringcap.bpf.c: what makes the program of one ring differ from another's.
type programConfig struct {
	SnapLen   uint32
	NrOutputs uint32
	Outputs   [maxOutputs]outputConfig
}

func newOutputConfig(c *cluster) outputConfig {
	return outputConfig{
		Base:    c.Base,
		Queues:  uint32(c.Queues),
		Balance: uint32(c.Balance),
		Key: [2]uint64{
			binary.LittleEndian.Uint64(c.HashKey[:8]),
			binary.LittleEndian.Uint64(c.HashKey[8:]),
		},
	}
}

// loadSpec reads the embedded object and fits it to this machine.
func loadSpec() (*ebpf.CollectionSpec, error) {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(objectFile))
	if err != nil {
		return nil, fmt.Errorf("read the eBPF object in this binary: %w", err)
	}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return nil, fmt.Errorf("number of possible CPUs: %w", err)
	}
	spec.Maps["rc_scratch"].MaxEntries = uint32(cpus)
	spec.Maps["rc_queue_stats"].InnerMap.MaxEntries = uint32(cpus)
	return spec, nil
}

// ringProgram is what a ring's taps run.
type ringProgram struct {
	config programConfig
	filter []bpf.RawInstruction
}

// bases returns the first places of the clusters that the program feeds.
func (p ringProgram) bases() []uint32 {
	bases := make([]uint32, p.config.NrOutputs)
	for i := range bases {
		bases[i] = p.config.Outputs[i].Base
	}
	return bases
}

// fingerprint names the program by everything that went into it, this binary's object included: a newer agent swaps
// its own program in.
func (p ringProgram) fingerprint() (string, error) {
	hash := sha256.New()
	hash.Write(objectFile)
	for _, part := range []any{p.config, uint32(len(p.filter)), p.filter} {
		if err := binary.Write(hash, binary.LittleEndian, part); err != nil {
			return "", fmt.Errorf("encode the program's configuration: %w", err)
		}
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// load puts the program into the kernel, once for each of the directions' hooks. The caller closes the programs.
func (p ringProgram) load(tables *tables, counters *ebpf.Map, directions capture.Direction) (programs, error) {
	spec, err := loadSpec()
	if err != nil {
		return programs{}, err
	}
	if directions&capture.Receive == 0 {
		delete(spec.Programs, ingressProgram)
	}
	if directions&capture.Transmit == 0 {
		delete(spec.Programs, egressProgram)
	}
	for _, program := range spec.Programs {
		if program.Instructions, err = replaceFilter(program.Instructions, p.filter); err != nil {
			return programs{}, err
		}
	}
	if err := spec.Variables[configVariable].Set(p.config); err != nil {
		return programs{}, fmt.Errorf("configure the eBPF program: %w", err)
	}
	replacements := tables.byName()
	replacements[ringCountersMap] = counters
	loaded, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: replacements})
	if err != nil {
		return programs{}, fmt.Errorf("load the eBPF program: %w", explainLoad(err))
	}
	defer loaded.Close()
	return programs{ingress: loaded.DetachProgram(ingressProgram), egress: loaded.DetachProgram(egressProgram)}, nil
}

// programs are a ring's loaded programs; nil for a direction that it has no tap in.
type programs struct {
	ingress, egress *ebpf.Program
}

func (p programs) forHook(h hook) *ebpf.Program {
	if h == hookIngress {
		return p.ingress
	}
	return p.egress
}

func (p programs) close() {
	for _, program := range []*ebpf.Program{p.ingress, p.egress} {
		if program != nil {
			program.Close()
		}
	}
}

// replaceFilter puts a translated filter into the place of the stand-in that the object has; an empty one leaves it.
func replaceFilter(program asm.Instructions, raw []bpf.RawInstruction) (asm.Instructions, error) {
	if len(raw) == 0 {
		return program, nil
	}
	translated, err := filter.EBPF(raw)
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
	// The first instruction's metadata has the symbol and the function's type, by which the kernel knows where
	// functions begin.
	translated[0].Metadata = program[start].Metadata
	replaced := make(asm.Instructions, 0, len(program)+len(translated))
	replaced = append(replaced, program[:start]...)
	replaced = append(replaced, translated...)
	return append(replaced, program[end:]...), nil
}

// verifierTail is how many of the last lines of the verifier's log an error carries: the complaint, not the walk to it.
const verifierTail = 8

// explainLoad shortens a verifier's log and says what to do about a lack of rights.
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
