// SPDX-License-Identifier: Apache-2.0

package filter

// Loads. In the copy for tagged packets, bytes 12 to 15 of the wire are beside the packet. What comes after them is 4
// bytes nearer than on the wire. A tagged packet has at least 12 bytes without its tag.

// loadAbsolute loads bytes at k of the wire into A.
func (r *rewriter) loadAbsolute(k, bytes uint32) error {
	switch {
	case k >= negative:
		r.reject()
	case !r.tagged || k+bytes <= tpidAt:
		r.emit(ld|sizeFor(bytes)|modeAbs, k)
	case k >= tagEnd:
		r.changed = true
		r.emit(ld|sizeFor(bytes)|modeAbs, k-tagSize)
	default:
		r.changed = true
		return r.loadAround(k, bytes)
	}
	return nil
}

// loadAround loads bytes that are partly or wholly in the tag, piece by piece. It does not change X.
func (r *rewriter) loadAround(k, bytes uint32) error {
	n := pieceAt(k, bytes)
	r.loadPiece(k, n)
	if n == bytes {
		return nil
	}
	word, err := r.word()
	if err != nil {
		return err
	}
	r.emit(stx, word)
	for done := n; done < bytes; done += n {
		n = pieceAt(k+done, bytes-done)
		r.emit(alu|opLsh|srcK, 8*n)
		r.emit(tax, 0)
		r.loadPiece(k+done, n)
		r.emit(alu|opOr|srcX, 0)
	}
	r.emit(ldx|modeMem, word)
	return nil
}

// pieceAt returns how many of the bytes at k are contiguous.
func pieceAt(k, bytes uint32) uint32 {
	switch {
	case k < tpidAt:
		return min(bytes, tpidAt-k)
	case k < tciAt:
		return min(bytes, tciAt-k)
	case k < tagEnd:
		return min(bytes, tagEnd-k)
	default:
		return bytes
	}
}

// loadPiece loads 1 to 3 contiguous bytes.
func (r *rewriter) loadPiece(k, bytes uint32) {
	switch {
	case k < tpidAt:
		r.loadBytes(k, bytes)
	case k < tciAt:
		r.loadHalf(adVLANTPID, k-tpidAt, bytes)
	case k < tagEnd:
		r.loadHalf(adVLANTag, k-tciAt, bytes)
	default:
		r.loadBytes(k-tagSize, bytes)
	}
}

// loadBytes loads from the packet as Linux holds it. Three bytes are never its first, so the byte before them can be
// loaded too.
func (r *rewriter) loadBytes(k, bytes uint32) {
	if bytes == 3 {
		r.emit(ld|sizeW|modeAbs, k-1)
		r.emit(alu|opAnd|srcK, 0xffffff)
		return
	}
	r.emit(ld|sizeFor(bytes)|modeAbs, k)
}

// loadHalf loads a 16-bit field beside the packet, or its byte at offset.
func (r *rewriter) loadHalf(field, offset, bytes uint32) {
	r.emit(ld|sizeW|modeAbs, field)
	switch {
	case bytes == 2:
	case offset == 0:
		r.emit(alu|opRsh|srcK, 8)
	default:
		r.emit(alu|opAnd|srcK, 0xff)
	}
}

// loadHeaderLength loads as ldxb 4*([k]&0xf) does.
func (r *rewriter) loadHeaderLength(k uint32) error {
	switch {
	case k >= negative:
		r.reject()
	case !r.tagged || k < tpidAt:
		r.emit(ldx|sizeB|modeMsh, k)
	case k >= tagEnd:
		r.changed = true
		r.emit(ldx|sizeB|modeMsh, k-tagSize)
	default:
		r.changed = true
		return r.keepingA(func() {
			r.loadPiece(k, 1)
			r.emit(alu|opAnd|srcK, 0xf)
			r.emit(alu|opLsh|srcK, 2)
		})
	}
	return nil
}

// loadIndirect loads bytes at X+k of the wire into A.
func (r *rewriter) loadIndirect(k, bytes uint32, x interval) error {
	if k > farthest {
		r.reject()
		return nil
	}
	if x.high+uint64(k) > uint64(farthest) {
		beyond, within := r.labels(1), r.labels(1)
		r.emit(txa, 0)
		r.jumpIf(opJgt, farthest-k, beyond, within)
		r.bind(beyond)
		r.reject()
		r.bind(within)
	}
	switch {
	case !r.tagged || x.high+uint64(k+bytes) <= tpidAt:
		r.emit(ld|sizeFor(bytes)|modeInd, k)
		return nil
	case x.low+uint64(k) >= tagEnd:
		return r.loadBehindTag(k, bytes)
	}
	return r.loadBySwitch(k, bytes)
}

// loadBehindTag loads bytes that are known to be after the tag.
func (r *rewriter) loadBehindTag(k, bytes uint32) error {
	r.changed = true
	if k >= tagSize {
		r.emit(ld|sizeFor(bytes)|modeInd, k-tagSize)
		return nil
	}
	word, err := r.word()
	if err != nil {
		return err
	}
	r.emit(stx, word)
	r.emit(txa, 0)
	r.emit(alu|opSub|srcK, tagSize-k)
	r.emit(tax, 0)
	r.emit(ld|sizeFor(bytes)|modeInd, 0)
	r.emit(ldx|modeMem, word)
	return nil
}

// loadBySwitch writes code that finds out at run time whether X+k is before, around or after the tag. Not only
// unusual programs need it: "tcp port 80" loads the port in this way, in a part of the program that tagged packets do
// not reach.
func (r *rewriter) loadBySwitch(k, bytes uint32) error {
	r.changed = true
	first := max(tpidAt-bytes+1, k) // the first offset from which a load reaches into the tag
	around := r.labels(tagEnd)      // more than enough; by offset
	behind, done := r.labels(1), r.labels(1)

	r.emit(txa, 0)
	r.jumpIf(opJge, tagEnd-k, behind, next)
	for offset := first; offset < tagEnd; offset++ {
		r.jumpIf(opJeq, offset-k, around+label(offset), next)
	}
	r.emit(ld|sizeFor(bytes)|modeInd, k)
	r.jump(done)
	for offset := first; offset < tagEnd; offset++ {
		r.bind(around + label(offset))
		if err := r.loadAround(offset, bytes); err != nil {
			return err
		}
		r.jump(done)
	}
	r.bind(behind)
	if err := r.loadBehindTag(k, bytes); err != nil {
		return err
	}
	r.bind(done)
	return nil
}
