#!/bin/sh
# Stands in for `ipmitool` where none is installed: answers the few raw commands that the driver
# sends (packages/bmc/src/ipmi), and switches a software machine on and off. The driver itself is
# tested against the real tool and a real BMC simulator elsewhere.
#
#   ipmitool-stand-in.sh NODE MACHINE FOLDER … -H ADDRESS … -f /dev/stdin COMMAND…
#
# MACHINE is the program of a software machine. FOLDER/ADDRESS holds the machine behind that BMC:
# guid (as hex bytes) and serial, which a BMC may lack, password, machine.pid while it is on,
# log-entries of its event log, console, what its serial port has shown, as printf takes it, manners, which says whether its system "stops" or "ignores" a soft
# off (it stops, without that file), and commands, which says what the BMC was told.
#
# It is started thousands of times: it reads files by itself, and starts no program for that.
node=$1 program=$2 folder=$3
shift 3
while [ $# -gt 0 ]; do
  case $1 in
    -H) machine="$folder/$2"; shift 2 ;;
    -f) shift 2; break ;;
    *) shift ;;
  esac
done
read -r given || [ -n "$given" ]
line_of() { line=$2; { read -r line <"$1"; } 2>/dev/null || [ -n "$line" ] || line=$2; }
line_of "$machine/password" ''
if [ "$given" != "$line" ]; then
  echo '> RAKP 2 HMAC is invalid' >&2
  exit 1
fi
echo "$*" >>"$machine/commands"
is_on() { line_of "$machine/machine.pid" ''; [ -n "$line" ] && kill -0 "$line" 2>/dev/null; }

case "$*" in
  'fru print 0')
    [ -f "$machine/serial" ] || {
      echo 'FRU Device Description : Builtin FRU Device (ID 0)'
      echo ' Device not present (Requested sensor, data, or record not found)' >&2
      exit 1
    }
    echo ' Product Manufacturer  : Software'
    line_of "$machine/serial" ''
    echo " Product Serial        : $line"
    ;;
  'raw 0x06 0x01') echo ' 00 03 09 08 02 9f 91 12 00 02 0f 00 00 00 00' ;;
  'raw 0x06 0x37')
    [ -f "$machine/guid" ] || {
      echo 'Unable to send RAW command (channel=0x0 netfn=0x6 lun=0x0 cmd=0x37 rsp=0xc1): Invalid command' >&2
      exit 1
    }
    line_of "$machine/guid" ''
    echo " $line"
    ;;
  'raw 0x00 0x01') if is_on; then echo ' 01 00 00'; else echo ' 00 00 00'; fi ;;
  'raw 0x00 0x02 0x01')
    is_on || {
      rm -f "$machine/machine.pid"
      # In a session of its own, and only then announced: our group is killed when we end.
      setsid -f sh -c 'echo $$ >"$2/machine.pid"; exec "$0" "$1" "$2" network >>"$2/machine.log" 2>&1' \
        "$node" "$program" "$machine" </dev/null >/dev/null 2>&1
      while [ ! -s "$machine/machine.pid" ]; do sleep 0.01; done
    }
    ;;
  'raw 0x00 0x02 0x00')
    if is_on; then
      kill -KILL "-$line"
      rm -f "$machine/machine.pid"
    fi
    ;;
  'raw 0x00 0x02 0x05')
    line_of "$machine/manners" 'stops'
    if [ "$line" = stops ] && is_on; then
      kill -KILL "-$line"
      rm -f "$machine/machine.pid"
    fi
    ;;
  'raw 0x00 0x08 0x05 '*) echo "${5#0x} ${6#0x}" >"$machine/boot-flags" ;;
  'raw 0x00 0x09 0x05 0x00 0x00')
    line_of "$machine/boot-flags" '00 00'
    echo " 01 05 $line 00 00 00"
    ;;
  'raw 0x0a 0x40')
    line_of "$machine/log-entries" 0
    printf ' 51 %02x 00 00 00 00 00 00 00 00 00 00 00 02\n' "$line"
    ;;
  # Until nobody holds its input open any more.
  'sol activate')
    [ -f "$machine/console" ] || {
      echo 'Info: SOL payload disabled' >&2
      exit 1
    }
    echo '[SOL Session operational.  Use ~? for help]'
    while read -r text; do printf "$text\r\n"; done <"$machine/console"
    while read -r text; do :; done
    ;;
  # The clearing itself is logged.
  'sel clear') echo 1 >"$machine/log-entries"; echo 'Clearing SEL.  Please allow a few seconds to erase.' ;;
  *)
    echo 'Unable to send RAW command (rsp=0xc1): Invalid command' >&2
    exit 1
    ;;
esac
