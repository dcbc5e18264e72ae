# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# Snort in its image, for scripts in a VM that have /layer.tar, /config and e2e/vm/guest.sh.
image=/image
nobody=65534

make_image() {
	mkdir $image
	tar -x -C $image -f /layer.tar
	mount -o bind $image $image
	mount -o bind /config $image/ringcap
	mount -t tmpfs tmpfs $image/dev
	cp -a /dev/null /dev/zero /dev/urandom $image/dev/
	mount -t proc proc $image/proc
	mount -t sysfs sysfs $image/sys
	mount -t tmpfs -o uid=$nobody,gid=$nobody tmpfs $image/var/log/snort
	mount -o remount,bind,ro $image
}

# make_nodes NAME: what the container runtime does: it makes nodes that every user in the container can open.
make_nodes() {
	rm -rf $image/dev/ringcap
	mkdir -p $image/dev/ringcap/"$1"
	for node in /dev/ringcap/"$1"/*; do
		mknod -m 666 $image"$node" c "$(printf %d 0x"$(stat -c %t "$node")")" "$(printf %d 0x"$(stat -c %T "$node")")"
	done
}

# run_snort FOLDER OPTION...: with its alerts in the folder, as a user without any capability. Ends only with Snort.
run_snort() {
	mkdir -p $image/var/log/snort/"$1"
	chown $nobody:$nobody $image/var/log/snort/"$1"
	log=/var/log/snort/$1
	shift
	exec env -i PATH=/usr/bin:/bin /sbin/setpriv --no-new-privs --inh-caps=-all --bounding-set=-all,+sys_chroot,+setuid,+setgid \
		/sbin/chroot --userspec=$nobody:$nobody --groups=$nobody $image \
		snort -H --daq-dir /usr/lib/daq -s 65535 -l "$log" --daq ringcap --daq-var report "$@"
}
