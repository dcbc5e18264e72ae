// SPDX-License-Identifier: GPL-2.0-only

#include "transmit.h"

#include <linux/module.h>
#include <linux/net.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <net/sock.h>


/* Bytes of memory that packets may take until the device is done with them: enough to fill a NIC's ring. */
#define RC_TRANSMIT_SNDBUF	(4 << 20)

/* Packets in flight hold the socket, and thereby the module. */
static struct proto rc_transmit_proto = {
	.name = "ringcap",
	.owner = THIS_MODULE,
	.obj_size = sizeof(struct sock),
};

static void rc_transmit_close_socket(struct socket *socket)
{
	struct sock *sk = socket->sk;

	if (sk) {
		sock_orphan(sk);
		socket->sk = NULL;
		sock_put(sk);
	}
	sock_release(socket);
}

/*
 * The socket is in the initial namespace, which stays: sent packets belong to the device's namespace. It has no family,
 * like tun's socket. Code that finds a socket of PF_PACKET on a packet takes it for a struct packet_sock, which is
 * larger.
 */
static struct socket *rc_transmit_open_socket(void)
{
	struct socket *socket;
	struct sock *sk;

	if (sock_create_lite(AF_UNSPEC, SOCK_RAW, 0, &socket))
		return NULL;
	sk = sk_alloc(&init_net, AF_UNSPEC, GFP_KERNEL, &rc_transmit_proto, 1);
	if (!sk) {
		sock_release(socket);
		return NULL;
	}
	sock_init_data(socket, sk);
	sk->sk_sndbuf = RC_TRANSMIT_SNDBUF;
	return socket;
}

struct rc_transmit *rc_transmit_create(void)
{
	struct rc_transmit *transmit = kzalloc(sizeof(*transmit), GFP_KERNEL_ACCOUNT);

	if (!transmit)
		return NULL;
	mutex_init(&transmit->lock);
	transmit->socket = rc_transmit_open_socket();
	if (transmit->socket && !rc_region_alloc(&transmit->index, sizeof(struct ringcap_tx_index), false) &&
	    !rc_region_alloc(&transmit->data, RINGCAP_TX_SIZE, false))
		return transmit;
	rc_transmit_destroy(transmit);
	return NULL;
}

void rc_transmit_destroy(struct rc_transmit *transmit)
{
	rc_region_free(&transmit->data);
	rc_region_free(&transmit->index);
	if (transmit->socket)
		rc_transmit_close_socket(transmit->socket);
	kfree(transmit);
}
