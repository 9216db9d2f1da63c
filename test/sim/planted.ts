/**
 * Defects put in on purpose: each breaks one promise that the protocol stands on, and the judge
 * must find it. A simulation that stays green with one of them proves nothing.
 */
import type { Hosts } from '@rackwright/controlplane';
import type { SimProcess } from '@rackwright/sim';

export const plantedFaults = [
  /** A disk reports `erased` and keeps its data. */
  'lyingDevice',
  /** The agent's disk acknowledges journal records that it never wrote. */
  'journalLosesWrites',
  /** The control plane answers reports before what they changed is durable. */
  'answersEarly',
  /** The store loses the writes of its last second when the control plane dies. */
  'storeForgets',
] as const;

export type PlantedFault = (typeof plantedFaults)[number];

/** Hosts that say `applied` at once and fold the report in a moment later. */
export function answersEarly(hosts: Hosts, process: SimProcess): Hosts {
  return new Proxy(hosts, {
    get: (target, name) => {
      if (name === 'report') {
        return (hostId: string, report: Parameters<Hosts['report']>[1]) => {
          void process.answer(2_000, () => target.report(hostId, report)).catch(() => undefined);
          return Promise.resolve({ kind: 'kept', verdict: { kind: 'applied' } });
        };
      }
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
