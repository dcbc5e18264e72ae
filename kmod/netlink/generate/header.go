// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"
)

// enumerator is one of a C enumeration. head is a comment before it, comment one behind it.
type enumerator struct {
	head, name, comment string
	value               int
}

var enumerations = regexp.MustCompile(`(?m)^enum (\w+) \{`)

// fillHeader replaces what is between the braces of the header's enumerations.
func (s *spec) fillHeader(header string) (string, error) {
	prefix := s.Name + "-"
	bodies := map[string]string{prefix + "cmd": s.commands(), prefix + "attr": s.attributes()}
	for _, d := range s.Definitions {
		if d.Type == "enum" {
			bodies[prefix+d.Name] = d.enumeration()
		}
	}
	for _, match := range enumerations.FindAllStringSubmatch(header, -1) {
		if name := strings.ReplaceAll(match[1], "_", "-"); bodies[name] == "" {
			return "", fmt.Errorf("enum %s is not in the specification", match[1])
		}
	}
	for name, body := range bodies {
		start := "enum " + strings.ReplaceAll(name, "-", "_") + " {\n"
		before, rest, found := strings.Cut(header, start)
		_, after, closed := strings.Cut(rest, "};\n")
		if !found || !closed {
			return "", fmt.Errorf("there is no %q: write an empty one where it belongs", strings.TrimSpace(start)+" };")
		}
		header = before + start + body + "};\n" + after
	}
	return header, nil
}

func (s *spec) commands() string {
	prefix := s.Operations.Prefix
	all := []enumerator{{name: cName(prefix, "unspec")}}
	for _, o := range s.Operations.List {
		all = append(all, enumerator{o.head, cName(prefix, o.Name), o.Doc, o.Value})
	}
	return enumerate(all, "__"+cName(prefix, "max"))
}

func (s *spec) attributes() string {
	set := s.Sets[0]
	var all []enumerator
	for _, a := range set.Attributes {
		all = append(all, enumerator{a.head, cName(set.Prefix, a.Name), a.comment(), a.number})
	}
	return enumerate(all, "__"+cName(set.Prefix, "max"))
}

// comment describes an attribute: its type and meaning.
func (a attribute) comment() string {
	if a.Type == "unused" || a.Type == "pad" {
		return ""
	}
	text := a.Type
	if a.Repeated {
		text += ", repeated"
	}
	if a.Doc != "" {
		text += ": " + a.Doc
	}
	return text
}

func (d definition) enumeration() string {
	var all []enumerator
	for i, e := range d.Entries {
		all = append(all, enumerator{name: cName(d.Prefix, e.Name), comment: e.Doc, value: d.Start + i})
	}
	last := ""
	if d.RenderMax {
		last = "__" + cName(d.Prefix, "max")
	}
	return enumerate(all, last)
}

// commentColumn is where comments behind enumerators begin, not counting the tab before these.
const commentColumn = 32

func enumerate(all []enumerator, last string) string {
	var out strings.Builder
	next := 0
	for _, e := range all {
		if e.head != "" {
			out.WriteString(headComment(e.head))
		}
		line := e.name
		if e.value != next {
			line += fmt.Sprintf(" = %d", e.value)
		}
		next = e.value + 1
		line += ","
		if e.comment != "" {
			line += strings.Repeat("\t", max((commentColumn-len(line)+7)/8, 1)) + "/* " + e.comment + " */"
		}
		out.WriteString("\t" + line + "\n")
	}
	if last != "" {
		out.WriteString("\t" + last + "\n")
	}
	return out.String()
}

func headComment(text string) string {
	if !strings.Contains(text, "\n") {
		return "\n\t/* " + text + " */\n"
	}
	return "\n\t/*\n\t * " + strings.ReplaceAll(text, "\n", "\n\t * ") + "\n\t */\n"
}

func cName(prefix, name string) string {
	return strings.ToUpper(strings.ReplaceAll(prefix+name, "-", "_"))
}
