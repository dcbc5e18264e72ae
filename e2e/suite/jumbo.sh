# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Frames of 9,014 bytes over node-ebpf's veth, whose MTU is 9200: a ring without snapLength has all of their bytes, and one with it
# says how many it has cut. Needs cli.sh and refused.sh.

jumbo_frames=51 jumbo_bytes=9014

# A pcap file with the frames: UDP, each with another source port.
jumbo_make() {
	python3 - "$1" "$jumbo_frames" "$jumbo_bytes" <<-'END'
		import struct, sys
		path, count, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
		with open(path, "wb") as out:
		    out.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
		    for i in range(count):
		        payload = bytes([i]) * (size - 42)
		        udp = struct.pack(">HHHH", 10000 + i, 9, 8 + len(payload), 0)
		        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp) + len(payload), i, 0, 64, 17, 0, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]))
		        frame = bytes(range(2, 14)) + b"\x08\x00" + ip + udp + payload
		        out.write(struct.pack("<IIII", 1 + i, 0, len(frame), len(frame)) + frame)
	END
}

# jumbo_capture FILE WAIT...: what `ringcap capture` has of the frames, once WAIT succeeds. What it said is in $work/capture.err.
jumbo_capture() {
	local file=$1
	shift
	jumbo_make "$work/jumbo.pcap"
	captures suite-jumbo --node node-ebpf -f 'udp dst port 9' -w "$file"
	replay "$work/jumbo.pcap" "$work/jumbo.json" node-ebpf
	jumbo_there() { [ "$(captured "$file")" -ge "$jumbo_frames" ]; }
	wait_for 60 jumbo_there || true
	wait_for 90 "$@" || { "$ringcap" status suite-jumbo; return 1; }
	kill -INT "$capture"
	wait "$capture" || { cat "$work/capture.err" >&2; return 1; }
	cat "$work/capture.err"
	[ "$(captured "$file")" = "$jumbo_frames" ]
}

# jumbo_truncated PACKETS: so many were cut, by the account of the ring's queues.
jumbo_truncated() {
	[ "$("$ringcap" status suite-jumbo -o json | jq '[.rings[].nodes[]?.queues[]?.truncated // 0] | add')" = "$1" ]
}

test_jumbo_frames_come_whole() {
	apply suite-jumbo CaptureRing '{interfaces: [{name: mirror0}], consumers: {namespaces: [default]}}'
	expect_condition capturering/suite-jumbo Programmed 'True'
	expect_condition capturering/suite-jumbo PacketsWhole 'True Whole'
	jumbo_capture "$work/whole.pcapng" jumbo_truncated 0
	[ "$(stat -c %s "$work/whole.pcapng")" -gt $((jumbo_frames * jumbo_bytes)) ]
	! grep -q 'cut' "$work/capture.err" || return 1
	grep -q "$jumbo_frames packets captured, 0 lost" "$work/capture.err"
	remove capturering/suite-jumbo
}

test_jumbo_frames_that_are_cut_are_counted() {
	apply suite-jumbo CaptureRing '{interfaces: [{name: mirror0}], snapLength: 1536, consumers: {namespaces: [default]}}'
	expect_condition capturering/suite-jumbo Programmed 'True'
	expect_condition capturering/suite-jumbo PacketsWhole 'True SnapLengthGiven .*1536'
	jumbo_capture "$work/cut.pcapng" jumbo_truncated "$jumbo_frames"
	[ "$(stat -c %s "$work/cut.pcapng")" -lt $((jumbo_frames * 2000)) ]
	grep -q "$jumbo_frames cut to at most 1,536 bytes" "$work/capture.err"
	grep -q "$jumbo_frames of them cut .*, 0 lost" "$work/capture.err"
	expect_condition capturering/suite-jumbo PacketsWhole 'True SnapLengthGiven'
	remove capturering/suite-jumbo
}
