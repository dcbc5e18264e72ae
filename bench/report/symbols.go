// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"fmt"
	"os"
	"sort"
	"strings"
)

// symbol is a function of the guest's kernel or of one of its modules.
type symbol struct {
	address uint64
	name    string
}

// symbolTable is ordered by address.
type symbolTable []symbol

// maxFunction is how far behind a symbol an address still belongs to it: code that was generated at run time, such as
// BPF programs, has none.
const maxFunction = 64 << 10

// readSymbols reads lines of /proc/kallsyms.
func readSymbols(path string) (symbolTable, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var table symbolTable
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var s symbol
		fields := strings.Fields(lines.Text())
		if len(fields) < 3 {
			return nil, fmt.Errorf("%s: %q is not a line of kallsyms", path, lines.Text())
		}
		if _, err := fmt.Sscanf(fields[0], "%x", &s.address); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", path, lines.Text(), err)
		}
		s.name = fields[2]
		if len(fields) > 3 {
			s.name += fields[3]
		}
		if strings.HasSuffix(s.name, "[bpf]") {
			s.name = "BPF programs" // which come behind the kernel's own pieces of such code
		}
		table = append(table, s)
	}
	sort.SliceStable(table, func(i, j int) bool { return table[i].address < table[j].address })
	return table, lines.Err()
}

// name returns the function at an address.
func (t symbolTable) name(address uint64) string {
	i := sort.Search(len(t), func(i int) bool { return t[i].address > address }) - 1
	if i < 0 || address-t[i].address > maxFunction {
		return "unknown"
	}
	return t[i].name
}
