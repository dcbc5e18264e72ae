# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The cluster's certificates and kubeconfigs. What is there is kept, so that running nodes stay trusted. Needs env.sh.

pki_key() { openssl ecparam -name prime256v1 -genkey -noout -out "$pki/$1.key"; }

# pki_certificate NAME SUBJECT [SUBJECT ALTERNATIVE NAMES]
pki_certificate() {
	[ ! -f "$pki/$1.crt" ] || return 0
	pki_key "$1"
	openssl req -new -key "$pki/$1.key" -subj "$2" -out "$pki/$1.csr"
	{
		echo 'keyUsage=digitalSignature,keyEncipherment'
		echo 'extendedKeyUsage=serverAuth,clientAuth'
		[ -z "${3:-}" ] || echo "subjectAltName=$3"
	} >"$pki/$1.ext"
	openssl x509 -req -in "$pki/$1.csr" -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -CAcreateserial -days 365 \
		-extfile "$pki/$1.ext" -out "$pki/$1.crt.new" 2>/dev/null
	mv "$pki/$1.crt.new" "$pki/$1.crt"
	rm "$pki/$1.csr" "$pki/$1.ext"
}

pki_kubeconfig() {
	cat >"$pki/$1.kubeconfig" <<-END
		apiVersion: v1
		kind: Config
		current-context: ringcap
		clusters:
		- name: ringcap
		  cluster:
		    server: https://$gateway:$apiserver_port
		    certificate-authority-data: $(base64 -w0 "$pki/ca.crt")
		users:
		- name: $1
		  user:
		    client-certificate-data: $(base64 -w0 "$pki/$1.crt")
		    client-key-data: $(base64 -w0 "$pki/$1.key")
		contexts:
		- name: ringcap
		  context: {cluster: ringcap, user: $1}
	END
}

pki_make() {
	local node user
	umask 077
	mkdir -p "$pki"
	if [ ! -f "$pki/ca.crt" ]; then
		pki_key ca
		openssl req -x509 -new -key "$pki/ca.key" -subj /CN=ringcap-local -days 365 \
			-addext keyUsage=critical,keyCertSign,cRLSign -out "$pki/ca.crt"
	fi
	if [ ! -f "$pki/serviceaccount.pub" ]; then
		openssl genrsa -out "$pki/serviceaccount.key" 2048 2>/dev/null
		openssl rsa -in "$pki/serviceaccount.key" -pubout -out "$pki/serviceaccount.pub" 2>/dev/null
	fi
	pki_certificate apiserver /CN=kube-apiserver "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,\
DNS:localhost,IP:$service_first,IP:$gateway"
	pki_certificate kubelet-client /O=system:masters/CN=apiserver-kubelet-client
	pki_certificate admin /O=system:masters/CN=admin
	pki_certificate controller-manager /CN=system:kube-controller-manager
	pki_certificate scheduler /CN=system:kube-scheduler
	pki_certificate proxy /CN=system:kube-proxy
	for node in $nodes; do
		pki_certificate "$node" "/O=system:nodes/CN=system:node:$node" "DNS:$node,IP:$(node_ip "$node")"
	done
	for user in admin controller-manager scheduler proxy $nodes; do pki_kubeconfig "$user"; done
}
