#!/bin/bash
# ipmi_sim's hand on one machine: what the BMC is told about power and boot device happens to its QEMU.
#
#   chassis-control.sh FOLDER MC get|set power|boot|reset|shutdown|identify [VALUE]
#
# FOLDER holds the machine: qemu-program, qemu-pxe.args and qemu-disk.args, qemu-own.args for firmware that keeps an
# order of its own, qemu-cdrom.args where there is a virtual drive (one argument a line; @BOOT@ stands
# for the number of the power-on), logs to be made empty for each power-on (boot-files), soft-off,
# which presses its power button where there is one, medium-in while the virtual drive is not empty,
# which puts the medium into a machine that waits for that and lets it go, and our state: qemu.pid,
# boot-device, boots. Every call is written to chassis.log.
folder=$1
verb="$3 $4"
value=$5
pid_file=$folder/qemu.pid

running() {
  [ -s "$pid_file" ] || return 1
  tr '\0' '\n' <"/proc/$(cat "$pid_file")/cmdline" 2>/dev/null | grep -qxF "$pid_file"
}

off() {
  running || return 0
  pid=$(cat "$pid_file")
  kill "$pid" 2>/dev/null
  for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    running || break
    sleep 0.05
  done
  running && kill -KILL "$pid" 2>/dev/null
  rm -f "$pid_file"
}

on() {
  running && return 0
  device=$(cat "$folder/boot-device" 2>/dev/null)
  echo none >"$folder/boot-device" # the override holds for one boot
  boot=$(($(cat "$folder/boots" 2>/dev/null || echo 0) + 1))
  echo "$boot" >"$folder/boots"
  sed "s/@BOOT@/$boot/g" "$folder/boot-files" | while read -r file; do : >"$file"; done
  case $device in
    pxe) ;;
    default) device=disk ;; # what the simulator calls an order for the disk
    cdrom) [ -e "$folder/qemu-cdrom.args" ] || device=disk ;;
    *) if [ -e "$folder/qemu-own.args" ]; then device=own; else device=disk; fi ;;
  esac
  echo "$(date +%s.%N) on $device boot $boot" >>"$folder/chassis.log"
  hold=
  [ -x "$folder/medium-in" ] && hold=-S
  sed "s/@BOOT@/$boot/g" "$folder/qemu-$device.args" |
    xargs -d '\n' "$(cat "$folder/qemu-program")" $hold >>"$folder/qemu.log" 2>&1
  [ -z "$hold" ] || "$folder/medium-in" >>"$folder/qemu.log" 2>&1
}

# ipmi_sim hands down its sockets: QEMU would keep their addresses after the simulator is gone.
for fd in /proc/$$/fd/*; do
  number=${fd##*/}
  if [ "$number" -gt 2 ] && [ "$number" -ne 255 ]; then eval "exec $number>&-"; fi
done 2>/dev/null

echo "$(date +%s.%N) $verb $value" >>"$folder/chassis.log"
case "$verb" in
  'get power') if running; then echo power:1; else echo power:0; fi ;;
  'get boot') echo "boot:$(cat "$folder/boot-device" 2>/dev/null || echo none)" ;;
  'set power') if [ "$value" = 1 ]; then on; else off; fi ;;
  'set boot') echo "$value" >"$folder/boot-device" ;;
  'set reset') running && off && on ;;
  'set shutdown') # where nobody says how the system is asked, it stops at once
    if [ -x "$folder/soft-off" ]; then running && "$folder/soft-off" >>"$folder/qemu.log" 2>&1; else off; fi ;;
  'set identify') : ;;
  *) exit 1 ;;
esac
exit 0
