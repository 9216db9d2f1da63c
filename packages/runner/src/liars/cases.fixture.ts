/** The closed list of cases: what a hostile disk does, and how many of its numbers are drawn. */
import fc from 'fast-check';
import type { Lie } from '../linux/file-disk-lies.ts';
import { type BoxDraft, blockBytes, type DiskDraft, type DiskKind } from './box.fixture.ts';

/** The draws of one case: numbers from 0 to 1 that it scales as it needs. */
export type Draw = () => number;

export interface Case {
  /** Kinds of disks that it applies to; all unless given. */
  readonly kinds?: readonly DiskKind[];
  readonly apply: (disk: DiskDraft, box: BoxDraft, draw: Draw) => void;
}

const everything = Number.MAX_SAFE_INTEGER;

function between(draw: Draw, least: number, most: number): number {
  return least + Math.floor(draw() * (most - least + 1));
}

function lie(make: (disk: DiskDraft, draw: Draw) => Lie, kinds?: readonly DiskKind[]): Case {
  const apply: Case['apply'] = (disk, _box, draw) => void disk.lies.push(make(disk, draw));
  return kinds === undefined ? { apply } : { kinds, apply };
}

function fault(make: (disk: DiskDraft, draw: Draw) => object, kinds?: readonly DiskKind[]): Case {
  const apply: Case['apply'] = (disk, _box, draw) => void disk.faults.push(make(disk, draw));
  return kinds === undefined ? { apply } : { kinds, apply };
}

function says(afterReads: number, field: 'serial' | 'wwn', text: string): Lie {
  return {
    kind: 'says',
    afterReads,
    afterOperations: 0,
    operations: everything,
    field,
    text,
  };
}

/** A range of whole blocks inside the disk. */
function range({ blocks }: DiskDraft, draw: Draw): { offset: number; length: number } {
  const count = between(draw, 1, 16);
  const first = between(draw, 0, blocks - count);
  return { offset: first * blockBytes, length: count * blockBytes };
}

/** The methods of one kind of disk. */
const operationOf = { discard: 'discard', overwrite: 'write', format: 'format' } as const;
const plain: readonly (keyof typeof operationOf)[] = ['discard', 'overwrite', 'format'];

function ownOperation({ kind }: DiskDraft): 'discard' | 'write' | 'format' {
  return kind === 'crypto' ? 'format' : operationOf[kind];
}

export const cases = {
  'SD card: discard leaves 0xFF': {
    kinds: ['discard'],
    apply: (disk) => {
      disk.extra['transport'] = 'mmc';
      disk.lies.push({ kind: 'leaves', operation: 'discard', byte: 0xff });
    },
  },
  'NVDIMM without a block device': {
    apply: (_disk, { signs }) => {
      const nobody = { model: '', serial: '', sizeBytes: 0, detail: '', devices: [] };
      signs.push({ source: 'firmware', kind: 'persistentMemory', name: 'nmem0', ...nobody });
    },
  },
  'pulled, and another disk in its place': {
    apply: (disk, { spares }, draw) => {
      const name = `foreign-${disk.name}`;
      spares.push({ name, serial: `FOREIGN-${disk.name}`, inPlaceOf: disk });
      const afterOperations = between(draw, 0, 4 * disk.blocks);
      disk.lies.push({ kind: 'pulled', afterOperations, replacedBy: name });
    },
  },
  'a range ignores writes': lie((disk, draw) => ({ kind: 'ignores', ...range(disk, draw) })),
  'cache loses even what was flushed': lie(() => ({ kind: 'losesAtPowerOff', flushed: true })),
  'cache loses what was not flushed': lie(() => ({ kind: 'losesAtPowerOff', flushed: false })),
  'zeros for a while after it was erased': lie(
    (disk, draw) => ({
      kind: 'comesBack',
      operation: ownOperation(disk),
      afterMs: between(draw, 1, 90_000),
    }),
    plain,
  ),
  'hides a part and tells its native size': {
    apply: (disk, _box, draw) => {
      if (disk.missingBlocks === 0) disk.hiddenBlocks = between(draw, 1, 16);
    },
  },
  'hides a part and tells nothing': {
    apply: (disk, _box, draw) => {
      if (disk.missingBlocks === 0) disk.hiddenBlocks = between(draw, 1, 16);
      disk.extra['tellsNativeSize'] = false;
    },
  },
  'ignores writes above an offset': lie(({ blocks }, draw) => {
    return {
      kind: 'ignores',
      offset: between(draw, 1, blocks - 1) * blockBytes,
      length: everything,
    };
  }),
  'says that it is larger than it is': {
    apply: (disk, _box, draw) => {
      if (disk.hiddenBlocks > 0) return;
      disk.missingBlocks = between(draw, 1, disk.blocks / 2);
      const everyBytes = (disk.blocks - disk.missingBlocks) * blockBytes;
      disk.lies.push({ kind: 'wraps', everyBytes });
    },
  },
  'two disks with one serial': {
    apply: (disk, { disks }) => {
      const other = disks.find((each) => each !== disk);
      if (other !== undefined) other.serial = disk.serial;
    },
  },
  'write-protected half-way, and says so': lie((disk, draw) => {
    const afterChanges = between(draw, 0, disk.blocks);
    return { kind: 'writeProtects', afterChanges, silently: false };
  }),
  'write-protected half-way, silently': lie((_disk, draw) => {
    return { kind: 'writeProtects', afterChanges: between(draw, 0, 64), silently: true };
  }),
  'its serial changes': lie((disk, draw) => {
    return says(between(draw, 1, 8), 'serial', `OTHER-${disk.name}`);
  }),
  'its WWN changes': lie((_disk, draw) => {
    return says(between(draw, 1, 8), 'wwn', 'eui.1');
  }),
  'first read correct, second not': {
    apply: (disk, _box, draw) => {
      const extent = range(disk, draw);
      disk.lies.push({ kind: 'ignores', ...extent });
      disk.lies.push({ kind: 'answers', ...extent, byte: 0, fromRead: 0, reads: 1 });
    },
  },
  'one read wrong': lie((disk, draw) => {
    const fromRead = between(draw, 0, 1);
    return { kind: 'answers', ...range(disk, draw), byte: 0x55, fromRead, reads: 1 };
  }),
  'pulled, and nothing in its place': lie((disk, draw) => {
    const afterOperations = between(draw, 0, 4 * disk.blocks);
    return { kind: 'pulled', afterOperations, replacedBy: '' };
  }),
  'another disk that says the same serial takes its place': {
    apply: (disk, { spares }, draw) => {
      const name = `twin-${disk.name}`;
      spares.push({ name, serial: disk.serial, inPlaceOf: disk });
      const afterOperations = between(draw, 0, 4 * disk.blocks);
      disk.lies.push({ kind: 'pulled', afterOperations, replacedBy: name });
    },
  },
  'a disk is plugged in meanwhile': {
    apply: (disk, { spares }, draw) => {
      const name = `guest-${disk.name}`;
      spares.push({ name, serial: `GUEST-${disk.name}`, inPlaceOf: undefined });
      disk.lies.push({ kind: 'brings', afterOperations: between(draw, 0, 128), disk: name });
    },
  },
  'is missing in later listings': lie((_disk, draw) => {
    return { kind: 'unlisted', afterListings: between(draw, 1, 3), listings: everything };
  }),
  'its flush fails': lie(() => ({ kind: 'flushFails' })),
  'erases only a part': lie(
    (disk, draw) => ({
      kind: 'stopsAt',
      operation: ownOperation(disk),
      bytes: between(draw, 0, disk.blocks - 1) * blockBytes,
    }),
    ['discard', 'format', 'crypto'],
  ),
  'erases nothing and says that it did': fault(
    (disk) => ({ kind: 'lying', operation: ownOperation(disk) }),
    ['discard', 'format', 'crypto'],
  ),
  'has namespaces that nobody sees': {
    kinds: ['format', 'crypto'],
    apply: (disk) => {
      const nvme = { formatSupported: true, cryptoEraseSupported: disk.kind === 'crypto' };
      disk.extra['nvme'] = { ...nvme, hiddenNamespaces: [2] };
    },
  },
  'answers fewer bytes': lie((disk, draw) => {
    return { kind: 'shortReads', ...range(disk, draw), bytes: 512 * between(draw, 0, 7) };
  }),
  'cannot be read in places': fault((disk, draw) => {
    return { kind: 'ioError', operation: 'read', ...range(disk, draw) };
  }),
  'cannot be written in places': fault((disk, draw) => {
    return { kind: 'ioError', operation: 'write', ...range(disk, draw) };
  }),
  'is write-protected': {
    apply: (disk) => {
      disk.extra['readOnly'] = true;
    },
  },
  'keeps what does not fill a unit of discard': {
    kinds: ['discard'],
    apply: (disk) => {
      disk.extra['regions'] = [{ name: disk.name, discardGranularity: 24_576 }];
    },
  },
} satisfies Readonly<Record<string, Case>>;

export type CaseName = keyof typeof cases;

export const caseNames = Object.keys(cases) as CaseName[];

/** Numbers from 0 to below 1, the same for a seed. */
export function drawsOf(seed: number): Draw {
  const [numbers = []] = fc.sample(
    fc.array(fc.integer({ min: 0, max: 999_999 }), {
      minLength: 64,
      maxLength: 64,
    }),
    { seed, numRuns: 1 },
  );
  let next = 0;
  return () => (numbers[next++ % numbers.length] ?? 0) / 1_000_000;
}
