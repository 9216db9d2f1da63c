/**
 * What goes into the ramdisk. Everything is taken from Debian packages of the build machine's own
 * release, besides Node (npm's pinned binary) and the bundled runner.
 */

/** Debian's generic kernel: the cloud one lacks the drivers of real hardware. */
export const KERNEL_PACKAGE = 'linux-image-amd64';

/** Packages whose programs or libraries the ramdisk holds. */
export const TOOL_PACKAGES = [
  'busybox-static',
  'dmidecode',
  'ipmitool',
  'kexec-tools',
  'libgcc-s1',
  'libstdc++6',
  'nvme-cli',
  'util-linux',
  'xz-utils',
] as const;

/** Packages that the build itself runs, unpacked and never installed. */
export const BUILD_PACKAGES = ['binutils', 'kmod'] as const;

/** Programs by name; each is looked for in the unpacked packages and brings its libraries. */
export const PROGRAMS = [
  'blkdiscard',
  'blockdev',
  'dmidecode',
  'ipmitool',
  'kexec',
  'lsblk',
  'nvme',
  'unshare',
  'wipefs',
  'xz',
] as const;

/**
 * Kernel modules by name; what they depend on comes along. A name that the kernel does not have, or
 * has built in, is skipped, and the build's manifest names it.
 */
export const KERNEL_MODULES = [
  // virtual machines
  'virtio_pci',
  'virtio_net',
  'virtio_blk',
  'virtio_scsi',
  'virtio_rng',
  'vmxnet3',
  'vmw_pvscsi',
  'hv_netvsc',
  'hv_storvsc',
  'xen_netfront',
  'xen_blkfront',
  // disks. nvme asks for a checksum by its name at run time, which its dependencies do not say.
  'nvme',
  'crct10dif_generic',
  'crct10dif_pclmul',
  'crc64_rocksoft',
  'crc32c_generic',
  'crc32c_intel',
  'ahci',
  'ata_piix',
  'ata_generic',
  'sd_mod',
  'ses',
  'sg',
  'mmc_block',
  'sdhci_pci',
  'sdhci_acpi',
  'vmd',
  // file systems that run.file writes to, and the alphabets of names in the last of them
  'ext4',
  'xfs',
  'vfat',
  'nls_ascii',
  'nls_cp437',
  'nls_iso8859-1',
  'nls_utf8',
  // the variables of UEFI, for boot entries
  'efivarfs',
  // storage controllers
  'megaraid_sas',
  'mpt3sas',
  'mpi3mr',
  'smartpqi',
  'hpsa',
  'aacraid',
  'isci',
  'mvsas',
  'pm80xx',
  'arcmsr',
  'ufshcd_pci',
  // network cards
  'e1000',
  'e1000e',
  'igb',
  'igc',
  'ixgbe',
  'i40e',
  'ice',
  'bnxt_en',
  'bnx2',
  'bnx2x',
  'tg3',
  'mlx4_en',
  'mlx5_core',
  'qede',
  'sfc',
  'atlantic',
  'r8169',
  'r8152',
  'enic',
  'be2net',
  'cxgb4',
  'ena',
  'ionic',
  'usbnet',
  'cdc_ether',
  // the way to our own BMC, and keyboards of people in front of the machine
  'ipmi_si',
  'ipmi_devintf',
  'ipmi_ssif',
  'xhci_pci',
  'ehci_pci',
  'ohci_pci',
  'uhci_hcd',
  'usbhid',
  'hid_generic',
  'usb_storage',
  'uas',
  // network protocols that udhcpc and the runner need
  'af_packet',
  'unix',
  'ipv6',
] as const;

/**
 * What programs know by these names. The applets of busybox only ask process 1 to do it, which a
 * shell of busybox takes before anything in PATH: `init` listens to them. All others do it at once.
 */
export const POWER_COMMANDS = ['halt', 'poweroff', 'reboot'] as const;

/** Loaded by name at boot, before the modules that the hardware asks for. */
export const MODULES_AT_BOOT = [
  'af_packet',
  'crct10dif_generic',
  'crc64_rocksoft',
  'crc32c_generic', // ext4 and xfs ask for it by its name when they are mounted
  'ipmi_si',
  'ipmi_devintf',
  'sd_mod',
] as const;
