/**
 * A disk that another host is known to have. Either one of the agents is wrong, or the disk was
 * moved, or both hosts see it. A write may destroy the other host's data, and a certificate may
 * name an absent disk. Therefore it is a fault: the host is neither erased nor written to nor
 * available, and a person clarifies it (DESIGN §5, Scope). Pure.
 */
import { create } from '@bufbuild/protobuf';
import { deviceIdentity } from '@rackwright/erasure';
import {
  type DiskElsewhere,
  DiskElsewhereSchema,
  type HostName,
  type Inventory,
  store,
} from '@rackwright/messages';
import { clearFault, setFault } from '../pass/fault.ts';
import type { Pass } from '../pass/pass.ts';

export const diskKnownElsewhere = 'diskKnownElsewhere';

/**
 * Compares the disks of an inventory with those of other hosts: sets, keeps or clears the fault.
 */
export function noteElsewhere(pass: Pass, inventory: Inventory): void {
  const found = pass.snapshot.disksElsewhere ?? new Map<string, HostName>();
  const identities = inventory.devices.map((device) => deviceIdentity(device));
  pass.record.disksElsewhere = [...new Set(identities)].flatMap((device) => {
    const host = found.get(device);
    return host === undefined ? [] : [create(store.DiskElsewhereSchema, { device, host })];
  });
  const texts = disksElsewhere(pass.record).map(({ text }) => text);
  if (texts.length === 0) clearFault(pass, diskKnownElsewhere);
  else setFault(pass, diskKnownElsewhere, texts.join('. '));
}

/** A disk that another host has, and the sentence about it. */
export interface DiskProblem {
  readonly text: string;
  readonly disk: DiskElsewhere;
}

/** One sentence for each such disk that nobody has confirmed. */
export function disksElsewhere({
  disksElsewhere: disks,
  host: of,
}: store.HostRecord): DiskProblem[] {
  const vouched = new Set(of?.spec?.cleaning?.movedDisks.map(sameCase));
  return disks
    .filter(({ device }) => !vouched.has(sameCase(device)))
    .map(({ device, host }) => {
      const id = host.replace(/^hosts\//, '');
      const after = `inspect that host again (rackwright host inspect ${id})`;
      const vouch = `or vouch for it with --moved-disk ${device}`;
      return {
        text: `disk ${device} is known as attached to ${host}: if it was moved, ${after}, ${vouch}`,
        disk: create(DiskElsewhereSchema, { device, host }),
      };
    });
}

/** Whether both are the same disk of the same other host. */
export function isSameDisk(one: DiskElsewhere, other: DiskElsewhere): boolean {
  return one.device === other.device && one.host === other.host;
}

function sameCase(name: string): string {
  return name.trim().toUpperCase();
}
