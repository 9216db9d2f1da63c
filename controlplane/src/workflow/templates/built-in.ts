/**
 * The templates that come with the control plane. They are ordinary YAML, parsed by the same
 * parser, and use the tools of the runner's ramdisk: a busybox.
 *
 * Must not: destroy anything.
 */

export const builtInPrefix = 'rackwright-';

/** Lines of a script: the error counts of the memory controllers. */
const memoryErrors = String.raw`      for counter in /sys/devices/system/edac/mc/mc*/[cu]e_count; do
        if [ -r "$counter" ]; then echo "$counter: $(cat "$counter")"; fi
      done`;

/** Fields of a step that only reads, and whose failure does not stop the next one. */
const readings = `    idempotent: true
    destructive: false
    timeout: 2m
    onFailure: continue
    onTimeout: continue`;

/** Facts of a machine for finding a defect; changes nothing on it. */
const diagnose = String.raw`description: Collect kernel messages, devices and disks; changes nothing
timeout: 30m
variables:
  lines:
    type: integer
    default: 400
    description: How many of the last lines of the kernel's messages are shown
steps:
  - name: system
    script: |
      echo "{{ host.id }}, boot $(cat /proc/sys/kernel/random/boot_id)"
      uname -a
      uptime
      for field in sys_vendor product_name board_name bios_version bios_date; do
        file=/sys/class/dmi/id/$field
        if [ -r "$file" ]; then echo "$field: $(cat "$file")"; fi
      done
${readings}
  - name: memory
    script: |
      cat /proc/meminfo
${memoryErrors}
${readings}
  - name: processors
    script: |
      grep -E '^(processor|model name|microcode|cpu MHz)' /proc/cpuinfo
      for zone in /sys/class/thermal/thermal_zone*; do
        if [ -r "$zone/temp" ]; then echo "$zone: $(cat "$zone/temp") millidegrees"; fi
      done
${readings}
  - name: devices
    script: |
      for device in /sys/bus/pci/devices/*; do
        [ -r "$device/vendor" ] || continue
        driver=none
        if [ -e "$device/driver" ]; then driver=$(basename "$(readlink "$device/driver")"); fi
        echo "$(basename "$device") $(cat "$device/vendor"):$(cat "$device/device")" \
          "class $(cat "$device/class") driver $driver"
      done
${readings}
  - name: disks
    script: |
      cat /proc/partitions
      for disk in /sys/block/*; do
        [ -e "$disk/device" ] || continue
        echo "$(basename "$disk"): $(cat "$disk/size") sectors," \
          "rotational $(cat "$disk/queue/rotational"), read-only $(cat "$disk/ro")"
      done
${readings}
  - name: network
    script: |
      for card in /sys/class/net/*; do
        echo "$(basename "$card"): $(cat "$card/address") $(cat "$card/operstate")"
        for counter in rx_errors tx_errors rx_dropped tx_dropped; do
          echo "  $counter: $(cat "$card/statistics/$counter")"
        done
      done
${readings}
  - name: kernel-messages
    script: dmesg | tail -n {{ vars.lines }}
    idempotent: true
    destructive: false
    timeout: 2m
`;

const clearEventLog = String.raw`description: Clear the event log of the BMC; needs no runner
timeout: 15m
steps:
  - name: clear
    bmc: management.clear_event_log
    idempotent: true
    timeout: 5m
    retries: 2
`;

/** Writes and reads back the memory in the ramdisk; disks are not touched. */
const checkMemory = String.raw`description: Fill free memory and read it back; disks are not touched
timeout: 12h
variables:
  megabytes:
    type: integer
    default: 1024
    description: How much memory is tested; it must be free in the ramdisk
  rounds:
    type: integer
    default: 3
    description: How often
steps:
  - name: fill-and-compare
    script: |
      set -e
      folder=/dev/shm
      [ -d "$folder" ] || folder=/tmp
      trap 'rm -f "$folder"/rackwright-memory-*' EXIT
      free=$(awk '/^MemAvailable/ { print int($2 / 1024) }' /proc/meminfo)
      if [ "$free" -lt $(({{ vars.megabytes }} + 256)) ]; then
        echo "only $free MiB of memory are free"
        exit 1
      fi
      round=1
      while [ "$round" -le {{ vars.rounds }} ]; do
        dd if=/dev/urandom of="$folder/rackwright-memory-block" bs=1M count=16 2>/dev/null
        wanted=$(sha256sum < "$folder/rackwright-memory-block")
        count=$(({{ vars.megabytes }} / 16))
        copy=0
        while [ "$copy" -lt "$count" ]; do
          cp "$folder/rackwright-memory-block" "$folder/rackwright-memory-$copy"
          copy=$((copy + 1))
        done
        copy=0
        while [ "$copy" -lt "$count" ]; do
          found=$(sha256sum < "$folder/rackwright-memory-$copy")
          if [ "$found" != "$wanted" ]; then
            echo "round $round: block $copy reads back as something else"
            exit 1
          fi
          copy=$((copy + 1))
        done
        echo "round $round: {{ vars.megabytes }} MiB read back as written"
        round=$((round + 1))
      done
    idempotent: true
    destructive: false
    timeout: 10h
  - name: corrected-errors
    script: |
${memoryErrors}
    idempotent: true
    destructive: false
    timeout: 2m
`;

/** By id. */
export const builtInSources: Readonly<Record<string, string>> = {
  [`${builtInPrefix}check-memory`]: checkMemory,
  [`${builtInPrefix}clear-event-log`]: clearEventLog,
  [`${builtInPrefix}diagnose`]: diagnose,
};
