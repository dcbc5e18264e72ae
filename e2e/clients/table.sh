# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2016 # what is expected is a command for later
#
# Programs on libpcap that Debian packages, and what each is to say of the packets of trace.py. Sourced by run.
#
#   client NAME PACKAGE SET NEEDS COMMAND EXPECTED
#
# SET is quick (in `make test` too) or all. NEEDS: words of
#   alias    the program insists on an interface that exists: RINGCAP_PCAP_ALIAS names it
#   root     it refuses to run as another user than root; it still has no capability
#   raw      it opens a raw socket, too, to send: CAP_NET_RAW
#   tty      it runs in a terminal only
#   killed   it does not end well by SIGINT, which each is sent once everything is read: its exit status says nothing
# COMMAND runs in an empty folder with $dev for the device. EXPECTED runs there when the program has ended, with its output in
# $out; says FILE TEXT succeeds when the extended regular expression is in the file, and packets FILE prints how many a capture has.

client tcpdump tcpdump quick '' 'tcpdump -i $dev -n -U -w got.pcap' 'says $out "^$sent packets captured" && same got.pcap'
client dumpcap wireshark-common quick '' 'dumpcap -q -P -i $dev -w got.pcap' '[ "$(packets got.pcap)" = $sent ]'
client tshark tshark quick '' 'tshark -i $dev -n -l -c $sent -T fields -e frame.protocols' '[ "$(grep -c ^eth: $out)" = $sent ] && says $out "eth:ethertype:ip:tcp:http"'
client ngrep ngrep quick '' 'ngrep -q -d $dev -l ringcap port 80' 'says $out "GET /ringcap.html"'
client tcpflow tcpflow quick '' 'tcpflow -i $dev' 'says 010.009.000.001.40001-010.009.000.002.00080 "^GET /ringcap.html"'
client argus argus-server quick 'alias' 'argus -i $dev -w got.argus' '[ -s got.argus ] && says got.argus ""'
client softflowd softflowd quick '' 'softflowd -D -i $dev -p $PWD/pid -c $PWD/ctl' 'says $out "10.9.0.3"'
client p0f p0f quick '' 'p0f -i $dev' 'says $out "10.9.0.1/40001 -> 10.9.0.2/80 \(syn\)"'
client arpwatch arpwatch quick '' 'touch arp.dat; arpwatch -d -i $dev -f $PWD/arp.dat -N' 'says $out "ip address: 10.9.0.1"'
client dsniff dsniff all 'raw' 'dsniff -n -i $dev' 'says $out "PASS secret7"'
client tcptrack tcptrack all 'tty' 'tcptrack -i $dev' 'says $out "10.9.0.1"'
client iftop iftop all 'alias tty' 'iftop -n -N -i $dev' 'says $out "10.9.0.3"'
client tcpick tcpick all 'alias' 'tcpick -i $dev -C' 'says $out "10.9.0.1:40001 .*10.9.0.2"'
client pmacctd pmacct all 'root' 'pmacctd -i $dev -c src_host,dst_host,proto -P print -r 1 -O csv' 'says $out "10.9.0.3,10.9.0.4,udp,1000,"'
client dnstop dnstop all 'tty' 'dnstop $dev' 'says $out "10.9.0.1"'
client tcpstat tcpstat all '' 'tcpstat -i $dev -o "%n packets\n" -F 1' '[ "$(awk "{ n += \$1 } END { print n }" $out)" = $sent ]'
client httpry httpry all 'killed' 'httpry -i $dev' 'says $out "ringcap.example.*/ringcap.html"'
client pktstat pktstat all '' 'pktstat -1 -n -i $dev -w 5' 'says $out "10.9.0.3"'
client ipgrab ipgrab all '' 'ipgrab -i $dev' 'says $out "10.9.0.3"'
client ssldump ssldump all 'killed' 'ssldump -n -i $dev' 'says $out "New TCP connection #1: 10.9.0.1\(40001\)"'
client dhcpdump dhcpdump all '' 'dhcpdump -i $dev' 'says $out "DHCPDISCOVER"'
client tcpxtract tcpxtract all '' 'tcpxtract -d $dev -o .' 'ls *.html'
client prads prads all '' 'prads -i $dev -l $PWD/log -u "" ' 'says log "10.9.0.2.*nginx"'
client sngrep sngrep all '' 'sngrep -N -q -d $dev -O got.pcap' '[ "$(packets got.pcap)" = 1 ]'
