/** Media that a host boots the runner from: known by their whole content, and left alone. Pure. */
import type { BootMedium as Wire } from '@rackwright/messages';
import type { DeviceFacts, Transport } from './facts.ts';

/** A boot medium in the form of an order and a policy. */
export interface BootMedium {
  /** SHA-256 of all of it: 64 lower-case hex digits. */
  readonly sha256: string;
  readonly sizeBytes: number;
}

/** From the wire. */
export function bootMediaOf(media: readonly Wire[]): BootMedium[] {
  return media.map(({ sha256, sizeBytes }) => ({ sha256, sizeBytes: Number(sizeBytes) }));
}

/** Inspections read a boot medium whole, so larger ones would take too long. */
export const bootMediumBytesMax = 8 * 2 ** 30;

/**
 * Transports of media that a machine boots from and that are none of its disks. Only transports
 * that a write by an order also leaves alone (`orderedScopePolicy`): a runner that writes does not
 * know which media these are.
 */
const maybeBootMedium: ReadonlySet<Transport> = new Set(['usb', 'optical', 'virtualMedia']);

/** Whether its content has to be read to tell. */
export function mayBeBootMedium(
  { transport, sizeBytes, regions }: DeviceFacts,
  media: readonly BootMedium[],
): boolean {
  if (!maybeBootMedium.has(transport) || regions.length !== 1) return false;
  return media.some((medium) => medium.sizeBytes === sizeBytes);
}

/** Whether every byte of it is known, and is a boot medium's. */
export function isBootMedium(device: DeviceFacts, media: readonly BootMedium[]): boolean {
  const { contentSha256, sizeBytes } = device;
  if (contentSha256 === undefined || !mayBeBootMedium(device, media)) return false;
  return media.some((medium) => medium.sha256 === contentSha256 && medium.sizeBytes === sizeBytes);
}
