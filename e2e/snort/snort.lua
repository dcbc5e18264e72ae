-- SPDX-License-Identifier: Apache-2.0
-- Reassembly of IP and TCP, protocols found by their content, and rules.rules. Port 9443 is not looked at. An alert's line has nothing that depends on when or
-- by which thread it was found.
stream = {}
stream_ip = {}
stream_icmp = {}
stream_tcp = {}
stream_udp = {}
stream_user = {}
http_inspect = {}
ftp_server = {}
ftp_client = {}
ftp_data = {}
ssh = {}
dns = {}
wizard = {
	curses = {},
	spells = {
		{ service = 'http', proto = 'tcp', to_server = { 'GET', 'POST', 'HEAD', 'OPTIONS' }, to_client = { 'HTTP/' } },
		{ service = 'ssh', proto = 'tcp', to_server = { 'SSH-' }, to_client = { 'SSH-' } },
		{ service = 'ftp', proto = 'tcp', to_server = { 'USER' }, to_client = { '220*FTP' } },
	},
}
binder = {
	{ when = { proto = 'tcp', ports = '9443', role = 'server' }, use = { action = 'allow' } },
	{ when = { proto = 'udp', ports = '53', role = 'server' }, use = { type = 'dns' } },
	{ when = { service = 'http' }, use = { type = 'http_inspect' } },
	{ use = { type = 'wizard' } },
}
ips = { include = 'rules.rules' }
event_queue = { max_queue = 64, log = 64 }
alert_csv = { file = true, fields = 'gid sid rev action proto pkt_len dir src_addr src_port dst_addr dst_port service msg' }
