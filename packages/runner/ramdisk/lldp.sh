#!/bin/sh
# Hears what a switch says of itself on one network card (LLDP, IEEE 802.1AB), for a while and in the
# background: lldp.sh CARD FOLDER SECONDS
#
# FOLDER gets CARD.since and CARD.until (seconds since the kernel's start) and CARD.pcap: at most 16
# frames, as `tcpdump -w` writes them. The runner reads them when it takes the inventory.

card=$1
folder=$2
seconds=$3

now() {
  cut -d. -f1 /proc/uptime
}

now >"$folder/$card.since"
# Into the file with each frame; what the kernel passes on is LLDP alone, in a small buffer.
timeout "$seconds" tcpdump -i "$card" -Z root -n -Q in -U -s 1514 -B 64 -c 16 \
  -w "$folder/$card.pcap" 'ether proto 0x88cc' >/dev/null 2>&1
now >"$folder/$card.until"
