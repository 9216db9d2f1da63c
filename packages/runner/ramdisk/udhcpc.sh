#!/bin/busybox sh
# What udhcpc calls on every change of the lease: sets address and routes of the boot card.
case "$1" in
  deconfig)
    ip addr flush dev "$interface"
    ip link set "$interface" up
    rm -f /run/rackwright/network-up
    ;;
  bound | renew)
    ip addr replace "$ip/${mask:-24}" dev "$interface" valid_lft forever
    for gateway in $router; do
      ip route replace default via "$gateway" dev "$interface"
      break
    done
    : >/run/rackwright/resolv.conf
    for server in $dns; do echo "nameserver $server" >>/run/rackwright/resolv.conf; done
    ln -sf /run/rackwright/resolv.conf /etc/resolv.conf
    echo "$ip/${mask:-24}" >/run/rackwright/network-up
    ;;
esac
exit 0
