/**
 * The traits that identify a machine before it is accepted. Pure.
 *
 * T2 Two findings are of one machine when more traits agree than differ: a NIC may be moved, a
 *    board exchanged, and boards are sold with the same UUID or serial. In doubt they are two: a
 *    person sees a machine that is listed twice, but not one that is hidden behind another.
 */

import { type MachineId, type RackName, sha256Hex } from '@rackwright/messages';
import type { MachineTraits } from '../fleet-view/index.ts';

/** The kinds of traits that identify a machine. */
export type IdentifiedBy = 'uuid' | 'serial' | 'mac';

/** T2 */
export function isSameMachine(one: MachineTraits, other: MachineTraits): boolean {
  const verdicts = [
    compare(one.uuid, other.uuid),
    compare(one.serial, other.serial),
    compareMacs(one.macs, other.macs),
  ];
  return verdicts.reduce<number>((sum, verdict) => sum + verdict, 0) > 0;
}

function compare(one: string | undefined, other: string | undefined): -1 | 0 | 1 {
  if (one === undefined || other === undefined) return 0;
  return one === other ? 1 : -1;
}

function compareMacs(one: readonly string[], other: readonly string[]): -1 | 0 | 1 {
  if (one.length === 0 || other.length === 0) return 0;
  return one.some((each) => other.includes(each)) ? 1 : -1;
}

/** The possible names of a machine, the best first. */
export function identitiesOf(
  traits: MachineTraits,
): { readonly by: IdentifiedBy; readonly id: MachineId }[] {
  const { uuid, serial, macs } = traits;
  const [lowest] = macs;
  const digits = 24;
  return [
    ...(uuid === undefined ? [] : [{ by: 'uuid' as const, id: `u-${uuid}` }]),
    ...(serial === undefined
      ? []
      : [{ by: 'serial' as const, id: `s-${sha256Hex(Buffer.from(serial)).slice(0, digits)}` }]),
    ...(lowest === undefined
      ? []
      : [{ by: 'mac' as const, id: `m-${lowest.replaceAll(':', '')}` }]),
  ];
}

/** A name that is unique to one rack: a report of another rack cannot take a machine's place. */
export function identityInRack(
  { macs }: MachineTraits,
  rack: RackName,
): { readonly by: IdentifiedBy; readonly id: MachineId } | undefined {
  const [lowest] = macs;
  if (lowest === undefined) return undefined;
  return { by: 'mac', id: `r-${sha256Hex(Buffer.from(`${rack} ${lowest}`)).slice(0, 24)}` };
}
