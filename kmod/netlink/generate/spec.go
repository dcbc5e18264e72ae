// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// spec is a netlink family in the form of the kernel's Documentation/netlink/specs, as far as ringcap's needs it.
type spec struct {
	Name, Protocol, Doc string
	Version             int
	Header              string `yaml:"uapi-header"`
	Definitions         []definition
	Sets                []attributeSet `yaml:"attribute-sets"`
	Operations          struct {
		Prefix string `yaml:"name-prefix"`
		List   []operation
	}
	Groups struct{ List []struct{ Name string } } `yaml:"mcast-groups"`
}

// definition is a constant, an enumeration, flags or a structure.
type definition struct {
	Name, Type string
	Value      int
	Prefix     string `yaml:"name-prefix"`
	Start      int    `yaml:"value-start"`
	// RenderMax adds __..._MAX to the enumeration: one more than the last.
	RenderMax bool `yaml:"render-max"`
	Entries   []struct{ Name, Doc string }
	Members   []member
}

// member is one of a structure. Structures are packed as they are: what C would pad is a member resv.
type member struct {
	Name, Type, Struct string
	Len                int
}

// attributeSet is the family's whole set, the first, or the attributes of a nest.
type attributeSet struct {
	Name       string
	Prefix     string `yaml:"name-prefix"`
	SubsetOf   string `yaml:"subset-of"`
	Attributes []attribute
}

type attribute struct {
	Name, Type, Doc, Enum, Struct string
	Value                         *int
	SubType                       string `yaml:"sub-type"`
	Repeated                      bool   `yaml:"multi-attr"`
	Nested                        string `yaml:"nested-attributes"`

	number int
	// head is the comment before it.
	head string
}

type operation struct {
	Name, Doc string
	Value     int
	Set       string `yaml:"attribute-set"`
	Flags     []string
	Group     string `yaml:"mcgrp"`
	Do, Dump  struct{ Request, Reply message }
	Event     message

	head string
}

type message struct{ Attributes []string }

// parse reads a specification. The error names what is in it that this program does not know, or that names nothing.
func parse(text []byte) (*spec, error) {
	var s spec
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&s); err != nil {
		return nil, err
	}
	if len(s.Sets) == 0 {
		return nil, fmt.Errorf("there is no attribute set")
	}
	if err := s.readHeads(text); err != nil {
		return nil, err
	}
	next := 0
	for i := range s.Sets[0].Attributes {
		a := &s.Sets[0].Attributes[i]
		if a.Value != nil {
			next = *a.Value
		}
		a.number = next
		next++
	}
	return &s, s.resolve()
}

// readHeads reads the comments before attributes and operations.
func (s *spec) readHeads(text []byte) error {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return err
	}
	sets := child(document.Content[0], "attribute-sets")
	for i, item := range child(sets.Content[0], "attributes").Content {
		s.Sets[0].Attributes[i].head = commentText(item)
	}
	for i, item := range child(child(document.Content[0], "operations"), "list").Content {
		s.Operations.List[i].head = commentText(item)
	}
	return nil
}

// child is a mapping's value, empty if it has none of that key.
func child(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return &yaml.Node{}
}

func commentText(item *yaml.Node) string {
	lines := strings.Split(item.HeadComment, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(strings.TrimPrefix(line, "#"))
	}
	return strings.Join(lines, "\n")
}

// resolve fills in the attributes of nests from the whole set, and looks up every name.
func (s *spec) resolve() error {
	for _, set := range s.Sets[1:] {
		for i, a := range set.Attributes {
			whole, err := s.attribute(a.Name)
			if err != nil {
				return fmt.Errorf("attribute set %s: %w", set.Name, err)
			}
			set.Attributes[i] = whole
		}
	}
	for _, a := range s.Sets[0].Attributes {
		if err := s.resolveAttribute(a); err != nil {
			return fmt.Errorf("attribute %s: %w", a.Name, err)
		}
	}
	for _, d := range s.Definitions {
		for _, m := range d.Members {
			if _, err := s.size(m); err != nil {
				return fmt.Errorf("structure %s: %w", d.Name, err)
			}
		}
	}
	for _, o := range s.Operations.List {
		for _, m := range o.messages() {
			for _, name := range m.Attributes {
				if _, err := s.attribute(name); err != nil {
					return fmt.Errorf("operation %s: %w", o.Name, err)
				}
			}
		}
	}
	return nil
}

func (o operation) messages() []message {
	return []message{o.Do.Request, o.Do.Reply, o.Dump.Request, o.Dump.Reply, o.Event}
}

func (s *spec) resolveAttribute(a attribute) error {
	if !slices.Contains([]string{"unused", "pad", "u32", "u64", "string", "binary", "nest"}, a.Type) {
		return fmt.Errorf("type %q is none that is known here", a.Type)
	}
	if a.Enum != "" && !slices.ContainsFunc(s.Definitions, func(d definition) bool {
		return d.Name == a.Enum && (d.Type == "enum" || d.Type == "flags")
	}) {
		return fmt.Errorf("no definition of enumeration %q", a.Enum)
	}
	if a.Struct != "" {
		if _, err := s.structure(a.Struct); err != nil {
			return err
		}
	}
	if a.Type == "nest" && (!a.Repeated || !slices.ContainsFunc(s.Sets[1:], func(n attributeSet) bool { return n.Name == a.Nested })) {
		return fmt.Errorf("a nest must be repeated and have an attribute set: %q is none", a.Nested)
	}
	return nil
}

func (s *spec) attribute(name string) (attribute, error) {
	all := s.Sets[0].Attributes
	i := slices.IndexFunc(all, func(a attribute) bool { return a.Name == name })
	if i < 0 {
		return attribute{}, fmt.Errorf("no attribute %q in the set %s", name, s.Sets[0].Name)
	}
	return all[i], nil
}

func (s *spec) structure(name string) (definition, error) {
	i := slices.IndexFunc(s.Definitions, func(d definition) bool { return d.Name == name && d.Type == "struct" })
	if i < 0 {
		return definition{}, fmt.Errorf("no definition of structure %q", name)
	}
	return s.Definitions[i], nil
}

// size is a member's, in bytes.
func (s *spec) size(m member) (int, error) {
	if size, ok := map[string]int{"u8": 1, "u16": 2, "u32": 4, "u64": 8}[m.Type]; ok {
		return size, nil
	}
	if m.Type != "binary" || (m.Struct == "") == (m.Len == 0) {
		return 0, fmt.Errorf("member %s: needs type u8, u16, u32, u64, or binary with either len or struct", m.Name)
	}
	if m.Struct == "" {
		return m.Len, nil
	}
	d, err := s.structure(m.Struct)
	if err != nil {
		return 0, err
	}
	sum := 0
	for _, inner := range d.Members {
		size, err := s.size(inner)
		if err != nil {
			return 0, err
		}
		sum += size
	}
	return sum, nil
}
