/**
 * The traits by which a machine and a host may be recognized as the same, and the index keys to
 * find one from the other. Pure.
 *
 * T1 Zeros, filler words and invalid MACs count as absent (as for guard 0).
 * K1 A host that may be the machine shares a key with it, for every later comparison: by inventory,
 *    by a boot MAC, or by its BMC. A shared key alone is no proof.
 */
import { meaningfulSerial, meaningfulUuid, uuidsAlike } from '@rackwright/erasure';
import type { BmcIdentity, Inventory, SystemIdentity, store as wire } from '@rackwright/messages';

export interface MachineTraits {
  /** SMBIOS UUID, hex of its bytes; undefined when it has no value. */
  readonly uuid: string | undefined;
  /** Serial number of the product, upper case. */
  readonly serial: string | undefined;
  /** Lower case with colons, sorted. */
  readonly macs: readonly string[];
}

const mac = /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/;

/** A MAC address in our form; undefined when it cannot be unique to one interface. */
export function unicastMac(text: string): string | undefined {
  const written = text.trim().toLowerCase().replaceAll('-', ':');
  if (!mac.test(written) || /^[0:]+$/.test(written)) return undefined;
  return (Number.parseInt(written.slice(0, 2), 16) & 1) === 1 ? undefined : written;
}

/** The traits of an inventory; `bootMac` counts also where the inventory lacks it. */
export function traitsOf(inventory: Inventory | undefined, bootMac = ''): MachineTraits {
  const { system, interfaces = [] } = inventory ?? {};
  const named = [bootMac, ...interfaces.map((each) => each.mac)].map(unicastMac);
  const macs = new Set(named.filter((each) => each !== undefined));
  return { ...namesOf(system), macs: [...macs].sort() };
}

function namesOf(system: SystemIdentity | undefined) {
  const uuid = meaningfulUuid(system?.uuid);
  return {
    uuid: uuid === undefined ? undefined : Buffer.from(uuid).toString('hex'),
    serial: meaningfulSerial(system?.serial),
  };
}

/** One for each trait. */
export function traitKeys({ uuid, serial, macs }: Partial<MachineTraits>): string[] {
  return [
    ...(uuid === undefined ? [] : [`uuid ${uuid}`]),
    ...(serial === undefined ? [] : [`serial ${serial}`]),
    ...(macs ?? []).map((each) => `${macPrefix}${each}`),
  ];
}

const macPrefix = 'mac ';

/** The MAC of a key; undefined: it is a key of another trait. */
export function macOfKey(key: string): string | undefined {
  return key.startsWith(macPrefix) ? key.slice(macPrefix.length) : undefined;
}

/** Keys of the machine from the host's record, except the boot MACs. */
export function recordKeys(
  accepted: wire.HostRecord['acceptedIdentity'],
  bmc: BmcIdentity | undefined,
): readonly string[] {
  const keys = [
    ...traitKeys(namesOf(accepted)),
    ...(bmc === undefined ? [] : traitKeys(namesOfBmc(bmc))),
  ];
  return keys.length === 0 ? none : [...new Set(keys)];
}

const none: readonly string[] = [];

function namesOfBmc({ guid, serial }: BmcIdentity) {
  const meant = meaningfulUuid(guid);
  const uuid = meant === undefined ? undefined : Buffer.from(meant).toString('hex');
  return { uuid, serial: meaningfulSerial(serial) };
}

/** The keys for hosts that may be a machine with this inventory (K1). */
export function machineKeys(inventory: Inventory | undefined, bootMac: string): string[] {
  const { uuid, bmcGuid, serial, chassisSerial, boardSerial } = inventory?.system ?? {};
  const serials = [serial, chassisSerial, boardSerial].map(meaningfulSerial);
  const keys = [
    ...traitKeys(traitsOf(inventory, bootMac)),
    // A BMC may write a UUID in another byte order, and give the serial number of any part.
    ...[...uuidsAlike(uuid), ...uuidsAlike(bmcGuid)].map((each) => `uuid ${each}`),
    ...serials.flatMap((each) => (each === undefined ? [] : [`serial ${each}`])),
  ];
  return [...new Set(keys)];
}
