/**
 * By what a machine and a host may turn out to be the same: what each says of itself, and the keys
 * by which one finds the other. Pure.
 *
 * T1 Zeros, filler words and MACs that are none count as absent (as for guard 0).
 * K1 A host that the machine may be shares a key with it, whoever judges that later: by inventory,
 *    by a boot MAC, or by the word of its BMC. Who shares a key need not be it.
 */
import { meaningfulSerial, meaningfulUuid, uuidsAlike } from '@rackwright/erasure';
import type { BmcIdentity, Inventory, SystemIdentity, store as wire } from '@rackwright/messages';

export interface MachineTraits {
  /** SMBIOS UUID, hex of its bytes; undefined when it says nothing. */
  readonly uuid: string | undefined;
  /** Serial number of the product, upper case. */
  readonly serial: string | undefined;
  /** Lower case with colons, sorted. */
  readonly macs: readonly string[];
}

const mac = /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/;

/** A MAC address as we write it; undefined when no interface can have it for itself. */
export function unicastMac(text: string): string | undefined {
  const written = text.trim().toLowerCase().replaceAll('-', ':');
  if (!mac.test(written) || /^[0:]+$/.test(written)) return undefined;
  return (Number.parseInt(written.slice(0, 2), 16) & 1) === 1 ? undefined : written;
}

/** The traits in an inventory; `bootMac` counts also where the inventory lacks it. */
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

/** The MAC of which a key is; undefined: it is of something else. */
export function macOfKey(key: string): string | undefined {
  return key.startsWith(macPrefix) ? key.slice(macPrefix.length) : undefined;
}

/** What a host's record says of its machine, but for the boot MACs. */
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

/** What a host is asked for that a machine with this inventory may be (K1). */
export function machineKeys(inventory: Inventory | undefined, bootMac: string): string[] {
  const { uuid, bmcGuid, serial, chassisSerial, boardSerial } = inventory?.system ?? {};
  const serials = [serial, chassisSerial, boardSerial].map(meaningfulSerial);
  const keys = [
    ...traitKeys(traitsOf(inventory, bootMac)),
    // A BMC may write a UUID in another order, and say the serial of any part.
    ...[...uuidsAlike(uuid), ...uuidsAlike(bmcGuid)].map((each) => `uuid ${each}`),
    ...serials.flatMap((each) => (each === undefined ? [] : [`serial ${each}`])),
  ];
  return [...new Set(keys)];
}
