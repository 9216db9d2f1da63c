/** The addresses of firmware's servers, and its own identity. */

/** A provisioning network on loopback. Ports are numbers that any user may bind. */
export interface BootNetwork {
  /** The broadcast address of DHCP, both ways: 127.255.255.255. */
  readonly broadcastAddress: string;
  /** In place of 67, 68, 4011 and 69. */
  readonly dhcpPort: number;
  readonly clientPort: number;
  readonly pxePort: number;
  readonly tftpPort: number;
}

/** The way in which a machine starts from the network. */
export type FirmwareForm = 'bios' | 'uefi' | 'uefiHttp';

/** What a boot client says about itself. */
export interface BootIdentity {
  /** Lower case, with colons. */
  readonly mac: string;
  /** SMBIOS UUID: 32 hex digits in the order of its bytes. */
  readonly uuid: string;
}

/** Option 93 of each form (IANA, processor architecture types). */
export const architectureOf: Readonly<Record<FirmwareForm, number>> = {
  bios: 0,
  uefi: 7,
  uefiHttp: 16,
};
