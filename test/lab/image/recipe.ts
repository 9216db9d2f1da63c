/**
 * What the bootable Debian of the lab consists of: packages, the files that make it quick where
 * every instruction is emulated, and its ways to boot.
 *
 * 1. It is Debian's own kernel, systemd and cloud-init, configured as an operator could; nothing in
 *    it is of this tree.
 */

/** The file system that the kernel mounts. */
export const ROOT_UUID = '6d4f3b1e-5a52-4c57-8e0d-1b7a52c9e0f1';
/** The file that tells its version. */
export const VERSION_FILE = 'etc/image-version';

const PACKAGES = [
  ...['usr-is-merged', 'systemd-sysv', 'udev', 'kmod', 'iproute2'],
  ...['linux-image-cloud-amd64', 'tiny-initramfs', 'cloud-init'],
];

/** Nobody reads them, and each megabyte is decompressed, hashed and read back by an emulator. */
const LEFT_OUT = [
  ...['doc', 'man', 'locale', 'i18n', 'info', 'lintian'].map((name) => `/usr/share/${name}/*`),
  ...['/usr/lib/x86_64-linux-gnu/gconv/*', '/lib/udev/hwdb.d/*', '/lib/modules/*/kernel/*'],
];

/** The cloud kernel has ext4 and NVMe built in. */
const MODULES = [
  ...['drivers/virtio', 'drivers/block/virtio_blk', 'drivers/net/virtio_net', 'drivers/net/net_f'],
  ...['drivers/acpi/button', 'drivers/input/evdev'],
  ...[
    'net/core/failover',
    'fs/fat',
    'fs/nls/nls_cp437',
    'fs/nls/nls_ascii',
    'fs/nls/nls_iso8859-1',
  ],
];

/** Makes an initial ramdisk with what the disks of the lab need. */
const INITRD =
  'version=$(ls /lib/modules); ' +
  'mktirfs -m no -M no --include-modules=virtio_pci,virtio_blk ' +
  '-o /boot/initrd.img-$version $version';

/** Of several packages that merge /usr, one brings all of Perl with it. */
const NO_USRMERGE =
  'mkdir -p "$1/etc/apt/preferences.d"; ' +
  "printf 'Package: usrmerge\\nPin: release *\\nPin-Priority: -1\\n' " +
  '>"$1/etc/apt/preferences.d/lab"';

/** Words for `mmdebstrap`. */
export const ROOT_WORDS: readonly string[] = [
  ...['--variant=essential', `--include=${PACKAGES.join(',')}`],
  '--aptopt=APT::Install-Recommends "false"',
  ...LEFT_OUT.map((path) => `--dpkgopt=path-exclude=${path}`),
  ...MODULES.map((path) => `--dpkgopt=path-include=/lib/modules/*/kernel/${path}*`),
  '--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr',
  `--setup-hook=${NO_USRMERGE}`,
  `--customize-hook=chroot "$1" sh -c '${INITRD}'`,
];

const CLOUD_CONFIG = 'etc/cloud/cloud.cfg';
// The modules that the lab looks at: each one left out is Python that is not emulated.
const CLOUD_CONFIG_TEXT = `datasource_list: [NoCloud]
users: []
disable_root: false
preserve_hostname: false
cloud_init_modules: [write-files, set_hostname, bootcmd]
cloud_config_modules: []
cloud_final_modules: [scripts-user, phone-home]
system_info:
  distro: debian
  network: {renderers: [networkd]}
`;

/** Files of the image, by path. */
export const FILES: Readonly<Record<string, string>> = {
  'etc/fstab': 'LABEL=root / ext4 defaults 0 1\n',
  'etc/machine-id': '', // each machine makes its own
  [CLOUD_CONFIG]: CLOUD_CONFIG_TEXT,
  'etc/systemd/system/systemd-networkd-wait-online.service.d/any.conf': `[Service]
ExecStart=
ExecStart=/lib/systemd/systemd-networkd-wait-online --any --ipv4 --timeout=60
`,
  // The lab cuts the power after the phone call: what the boot wrote must be on the disk by then.
  'etc/systemd/system/cloud-final.service.d/sync.conf': `[Service]
ExecStartPre=/bin/sync
`,
};

export const ENABLED = ['systemd-networkd.service', 'systemd-networkd-wait-online.service'];

/** What nobody waits for in the lab. */
export const MASKED = [
  ...['getty.target', 'serial-getty@ttyS0.service', 'getty-static.service'],
  ...['systemd-update-utmp.service', 'systemd-update-utmp-runlevel.service'],
  ...['systemd-random-seed.service', 'systemd-logind.service', 'systemd-user-sessions.service'],
  ...['systemd-pstore.service', 'e2scrub_reap.service', 'e2scrub_all.timer'],
  ...['apt-daily.timer', 'apt-daily-upgrade.timer', 'dpkg-db-backup.timer', 'fstrim.timer'],
  ...['dev-hugepages.mount', 'dev-mqueue.mount'],
  ...['sys-kernel-debug.mount', 'sys-kernel-tracing.mount'],
  ...['configfs', 'dm_mod', 'drm', 'efi_pstore', 'fuse', 'loop'].map(
    (name) => `modprobe@${name}.service`,
  ),
  ...['systemd-ask-password-console.path', 'systemd-ask-password-wall.path'],
  ...['cloud-config.service', 'cloud-init-hotplugd.socket'],
];

/** An image that applies its first-boot data, and does not know how to phone home. */
export const SILENT_FILES: Readonly<Record<string, string>> = {
  ...FILES,
  [CLOUD_CONFIG]: CLOUD_CONFIG_TEXT.replace(', phone-home]', ']'),
};

/** Once it has stopped by its power button, it ignores that. */
const POWER_KEY = `[Unit]
ConditionPathExists=!/var/lib/stopped-once
[Service]
ExecStart=/bin/sh -c 'until ls /dev/input/event*; do sleep 1; done; sleep 2; \
  for each in /dev/input/event*; do \
  (head -c 24 "$each" >/dev/null && touch /var/lib/stopped-once && systemctl poweroff) & done; \
  echo "lab power key: $(ls /dev/input | tr "\\n" " ")" >/dev/ttyS0; wait'
`;

/** An image that stops when its power button is pressed once, and shows its journal. */
export const SHUTDOWN_FILES: Readonly<Record<string, string>> = {
  ...FILES,
  'etc/systemd/system/power-key.service': POWER_KEY,
  'etc/systemd/system/multi-user.target.d/power-key.conf': '[Unit]\nWants=power-key.service\n',
  'etc/systemd/journald.conf.d/console.conf':
    '[Journal]\nForwardToConsole=yes\nTTYPath=/dev/ttyS0\nMaxLevelConsole=info\n',
};

/** An image whose root is its initial ramdisk. */
export const NETBOOT_FILES: Readonly<Record<string, string>> = { ...FILES, 'etc/fstab': '' };

const USUAL_WORDS =
  'console=ttyS0 quiet systemd.show_status=0 mitigations=off tsc=reliable random.trust_cpu=on ' +
  'audit=0';
const KERNEL_WORDS = `root=UUID=${ROOT_UUID} ro ${USUAL_WORDS}`;
/** What the kernel is told where there is no root to be mounted. */
export const NETBOOT_WORDS = `rdinit=/sbin/init no_timer_check ${USUAL_WORDS}`;

/** Files beside kernel and initrd on the partition that both firmwares boot from. */
export const BOOT_FILES: Readonly<Record<string, string>> = {
  'syslinux.cfg': `DEFAULT lab
LABEL lab
  LINUX vmlinuz
  INITRD initrd.img
  APPEND ${KERNEL_WORDS}
`,
  // Where the GRUB that Debian signs looks for it.
  'EFI/debian/grub.cfg': `search --no-floppy --label --set=root BOOT
linux /vmlinuz ${KERNEL_WORDS}
initrd /initrd.img
boot
`,
};
