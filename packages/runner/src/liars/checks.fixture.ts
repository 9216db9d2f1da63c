/**
 * Each check of a clean against lies, the way to remove it here, and the liar that only this check
 * catches. A check is removed by a wrapper around the steps: they have no switch for it.
 */
import { type DeviceFacts, planChallenge, regionSeed } from '@rackwright/erasure';
import { erasuresAtOnceMax } from '../erase/on-devices.ts';
import type { BlockDevices, HeldDevice, OpenRegion } from '../machine/block-devices.ts';
import { changed } from '../machine/held.fixture.ts';
import { type LabCheck, labChecks } from '../steps/without-checks.ts';
import { type BoxDraft, blockBytes, diskDraft } from './box.fixture.ts';
import { type Case, type CaseName, cases } from './cases.fixture.ts';
import { type Site, siteOf } from './run.fixture.ts';

/** The seed of every row. */
export const rowSeed = 1;

/**
 * Checks that the laboratory removes too, in the same way, and those that only a test can remove.
 */
export const checkNames = [
  ...labChecks,
  'identityAskedAgain',
  'lookAtTheEnd',
  'nativeSize',
  'challengeReadBack',
  'verdict',
  'readAgainAfterDelay',
  'marks',
] as const;

export type CheckName = (typeof checkNames)[number];

export interface CheckRow {
  readonly takeAway: (site: Site) => Site;
  /** The machine with the liar. */
  readonly liar: () => BoxDraft;
  /** What the clean of this row is without from the beginning: later checks that catch it too. */
  readonly baseline?: (site: Site) => Site;
  /** What gets through, in the judge's words. */
  readonly red: RegExp;
}

/** More blocks than are challenged, so that something of what stood there is left. */
function withLiar(kind: 'discard' | 'overwrite' | 'format' | 'crypto', name: CaseName): BoxDraft {
  const box = { disks: [diskDraft('d0', kind, 128)], spares: [], signs: [] };
  const [disk] = box.disks;
  const chosen: Case = cases[name];
  if (disk !== undefined) chosen.apply(disk, box, () => 0.5);
  return box;
}

function boxWith(
  kind: 'discard' | 'overwrite' | 'crypto',
  blocks: number,
  ...lies: Lies
): BoxDraft {
  return { disks: [{ ...diskDraft('d0', kind, blocks), lies }], spares: [], signs: [] };
}
type Lies = ReturnType<typeof diskDraft>['lies'];

const leftOver = /certified SN-d0 with .* left/;

export const checks: Readonly<Record<CheckName, CheckRow>> = {
  heldDevice: {
    takeAway: without('heldDevice'),
    // While others are written, a disk that waits for its slot is swapped.
    liar: () => {
      const overwritten = (name: string) => diskDraft(name, 'overwrite', 48);
      const first = Array.from({ length: erasuresAtOnceMax }, (_, n) => overwritten(`d${n}`));
      const [waits, replacedBy] = [overwritten('waits'), 'foreign'];
      const swap = { afterOperations: 0, disk: waits.name, replacedBy };
      for (const { lies } of first.slice(0, 1)) lies.push({ kind: 'swaps', ...swap });
      const spares = [{ name: replacedBy, serial: 'FOREIGN', inPlaceOf: waits }];
      return { disks: [...first, waits], spares, signs: [] };
    },
    red: /wrote the foreign disk/,
  },
  identityAskedAgain: {
    takeAway: wrapped((devices) => changedHold(devices, unquestioned)),
    // Another one only while its challenge has been written and nothing is erased yet.
    liar: () => {
      const during = { afterReads: 0, afterOperations: 96, operations: 1 };
      return boxWith('discard', 48, { kind: 'says', field: 'serial', text: 'OTHER', ...during });
    },
    red: /which said that it was another/,
  },
  lookAtTheEnd: {
    takeAway: wrapped(listedOnce),
    // Plugged in while the disk is read again: nobody looks later.
    liar: () => {
      const box = boxWith('overwrite', 48, { kind: 'brings', afterOperations: 98, disk: 'guest' });
      return { ...box, spares: [{ name: 'guest', serial: 'GUEST', inPlaceOf: undefined }] };
    },
    red: /although GUEST is there/,
  },
  storageSigns: {
    takeAway: without('storageSigns'),
    liar: () => withLiar('overwrite', 'NVDIMM without a block device'),
    red: /in spite of nmem0/,
  },
  nativeSize: {
    takeAway: wrapped((devices) => ({
      ...holding(devices),
      list: async () => {
        const listing = await devices.list();
        return {
          ...listing,
          devices: listing.devices.map((facts) => withoutCapacity(facts)),
        };
      },
    })),
    liar: () => withLiar('overwrite', 'hides a part and tells its native size'),
    red: leftOver,
  },
  challengeReadBack: {
    takeAway: wrapped((devices) => changedHold(devices, (held) => echoing(held, new Map()))),
    // It takes no challenge and erases nothing: nothing of a challenge is left afterwards.
    liar: () => {
      const ignored = challengesOf(128).map((offset) => {
        return { kind: 'ignores', offset, length: blockBytes } as const;
      });
      const box = boxWith('crypto', 128, ...ignored);
      for (const { faults } of box.disks) faults.push({ kind: 'lying', operation: 'format' });
      return box;
    },
    red: leftOver,
  },
  verdict: {
    takeAway: (site) => ({ ...site, change: { verdictSwitchedOff: true } }),
    baseline: (site) => ({ ...site, readsAfterPowerCycle: false, rereadDelayMs: 0 }),
    liar: () => withLiar('discard', 'erases nothing and says that it did'),
    red: leftOver,
  },
  wholeRead: {
    takeAway: without('wholeRead'),
    baseline: (site) => ({ ...site, readsAfterPowerCycle: false }),
    liar: () => {
      const hole = { offset: 700 * blockBytes, length: blockBytes };
      return boxWith('overwrite', 1_024, { kind: 'ignores', ...hole });
    },
    red: leftOver,
  },
  readAgainAfterDelay: {
    takeAway: (site) => ({ ...site, rereadDelayMs: 0 }),
    // A certificate is there before the power cycle: data that comes back until then has to be
    // found.
    baseline: (site) => ({ ...site, readsAfterPowerCycle: false }),
    liar: () =>
      boxWith('discard', 128, { kind: 'comesBack', operation: 'discard', afterMs: 90_000 }),
    red: leftOver,
  },
  powerCycleRead: {
    takeAway: without('powerCycleRead'),
    liar: () => withLiar('overwrite', 'cache loses even what was flushed'),
    red: leftOver,
  },
  marks: {
    takeAway: (site) => {
      const written: Written = new Map();
      return wrapped((devices) => changedHold(devices, (held) => echoing(held, written)))(site);
    },
    liar: () => withLiar('crypto', 'cache loses even what was flushed'),
    red: leftOver,
  },
};

/** The challenged places of the disk d0's only region. */
function challengesOf(blocks: number): readonly number[] {
  const seed = regionSeed(siteOf(rowSeed).seed, 'SN-d0', '0');
  const spans = [{ offset: 0, length: blocks * blockBytes }];
  return planChallenge(seed, spans, { level: 'full' }).challenges;
}

function without(check: LabCheck): (site: Site) => Site {
  return (site) => ({ ...site, without: new Set([check]) });
}

function wrapped(change: (devices: BlockDevices) => BlockDevices): (site: Site) => Site {
  return (site) => ({ ...site, wrap: (devices) => change(site.wrap(devices)) });
}

function holding(devices: BlockDevices): Omit<BlockDevices, 'list'> {
  return {
    hold: (...args) => devices.hold(...args),
    dismantle: (device) => devices.dismantle(device),
    unhide: (device) => devices.unhide(device),
  };
}

function withoutCapacity(facts: DeviceFacts): DeviceFacts {
  const { capacity, ...rest } = facts;
  return capacity === undefined ? facts : rest;
}

function changedHold(
  devices: BlockDevices,
  change: (held: HeldDevice) => HeldDevice,
): BlockDevices {
  return {
    ...holding(devices),
    list: () => devices.list(),
    hold: async (...args) => change(await devices.hold(...args)),
  };
}

function unquestioned(held: HeldDevice): HeldDevice {
  return changed(held, { confirm: async () => {}, checkAttached: async () => {} });
}

function listedOnce(devices: BlockDevices): BlockDevices {
  let first: ReturnType<BlockDevices['list']> | undefined;
  return {
    ...holding(devices),
    list: () => {
      first ??= devices.list();
      return first;
    },
  };
}

/** The written bytes, by region and offset. */
type Written = Map<string, Uint8Array>;

/** Single blocks that were written read back as written. */
function echoing(held: HeldDevice, written: Written): HeldDevice {
  return changed(held, {
    regions: held.regions.map((region, index): OpenRegion => {
      const name = (offset: number): string => `${index} ${offset}`;
      return {
        ...region,
        write: async (offset, bytes) => {
          written.set(name(offset), bytes.slice());
          await region.write(offset, bytes);
        },
        read: async (offset, length) => {
          return written.get(name(offset)) ?? (await region.read(offset, length));
        },
        readInto: async (offset, target) => {
          const block = target.length === blockBytes ? written.get(name(offset)) : undefined;
          if (block === undefined) await region.readInto(offset, target);
          else target.set(block);
        },
      };
    }),
  });
}
