// SPDX-License-Identifier: Apache-2.0

package kmod

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/mdlayher/netlink"
)

// This file encodes and parses attributes, for the generated messages in uapi.go.

// encodes is implemented by a request, and by a nest in one.
type encodes interface {
	encode(*netlink.AttributeEncoder)
}

// marshal encodes a request as netlink attributes.
func marshal(request encodes) ([]byte, error) {
	e := netlink.NewAttributeEncoder()
	request.encode(e)
	return e.Encode()
}

// put encodes a value if it is not nil.
func put[T any](encode func(uint16, T), attribute uint16, value *T) {
	if value != nil {
		encode(attribute, *value)
	}
}

// putArray encodes structures or numbers, one after the other, as C has them. It leaves out an empty array.
func putArray[T any](e *netlink.AttributeEncoder, attribute uint16, array []T) {
	if len(array) > 0 {
		e.Do(attribute, func() ([]byte, error) { return binary.Append(nil, binary.NativeEndian, array) })
	}
}

func putNests[T encodes](e *netlink.AttributeEncoder, attribute uint16, nests []T) {
	for _, n := range nests {
		e.Nested(attribute, func(e *netlink.AttributeEncoder) error {
			n.encode(e)
			return nil
		})
	}
}

// unmarshal parses a message that the module sent.
func unmarshal[M any](data []byte, parse func(*netlink.AttributeDecoder) M) (m M, err error) {
	d, err := netlink.NewAttributeDecoder(data)
	if err == nil {
		m = parse(d)
		err = d.Err()
	}
	if err != nil {
		return m, fmt.Errorf("decode the module's answer: %w", err)
	}
	return m, nil
}

func nest[M any](d *netlink.AttributeDecoder, parse func(*netlink.AttributeDecoder) M) (m M) {
	d.Nested(func(d *netlink.AttributeDecoder) error {
		m = parse(d)
		return nil
	})
	return m
}

// array holds structures or numbers as C has them. It does not decode them at once, because there may be many that
// nobody asks for.
type array[T any] []byte

// all decodes all complete elements. T has no pointers or padding, as in C. So bytes are copied as they are, which
// takes a hundredth of the time of package binary. A dump has 65536 rules.
func (a array[T]) all() []T {
	size := int(unsafe.Sizeof(*new(T)))
	all := make([]T, len(a)/size)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(all))), len(all)*size), a)
	return all
}
