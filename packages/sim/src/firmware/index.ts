/** Firmware of simulated machines on loopback, and the DHCP server of their site. */
export { type BootParameters } from './dhcp-client.ts';
export { type BootEnd, netboot, type SimulatedFirmware } from './firmware.ts';
export { type LeaseGiverOptions, type SiteDhcpServer, startLeaseGiver } from './lease-giver.ts';
export { type BootIdentity, type BootNetwork, type FirmwareForm } from './network.ts';
export { fetchByTftp, type TftpFetch } from './tftp-client.ts';
