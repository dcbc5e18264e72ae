-- SPDX-License-Identifier: Apache-2.0
-- In line: TCP is followed, and inline.rules decide.
stream = {}
stream_ip = {}
stream_icmp = {}
stream_tcp = {}
stream_udp = {}
reject = { reset = 'both' }
ips = { include = 'inline.rules' }
alert_csv = { file = true, fields = 'sid action src_addr src_port dst_addr dst_port msg' }
