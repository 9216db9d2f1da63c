/**
 * How a file disk lies, by the entry `lies` of its description:
 *
 *     "lies": [{ "kind": "ignores", "operation": "write", "offset": 0, "length": 65536 },
 *              { "kind": "losesAtPowerOff", "flushed": true }]
 *
 * A lie is success that is none, or an answer that is not true. What really stands on the medium is
 * the image file once `switchOffFileDisks` has been called.
 */
import { asObject, flagAt, numberAt, type ToolJsonObject, textAt } from '../machine/json-fields.ts';

/** Operations that change a medium, and reading. */
export type MediumOperation = 'read' | 'write' | 'discard' | 'format';

export const mediumOperations: readonly MediumOperation[] = ['read', 'write', 'discard', 'format'];

/** Bytes from `offset`; all to the end where a description gives no length. */
export interface Extent {
  readonly offset: number;
  readonly length: number;
}

export type Lie =
  /** Changes in the range are confirmed and not made. */
  | (Extent & { readonly kind: 'ignores' })
  /** Addresses wrap: a disk that says that it is larger than it is. */
  | { readonly kind: 'wraps'; readonly everyBytes: number }
  /** From the n-th read of a block in the range on, so many reads of it answer this byte. */
  | (Extent & {
      readonly kind: 'answers';
      readonly byte: number;
      readonly fromRead: number;
      readonly reads: number;
    })
  /** A write cache that is lost with the power: unflushed writes, or even flushed ones. */
  | { readonly kind: 'losesAtPowerOff'; readonly flushed: boolean }
  /** The content that the operation removed is there again so long after it. */
  | { readonly kind: 'comesBack'; readonly operation: MediumOperation; readonly afterMs: number }
  /** The operation leaves this byte where it should leave zeros. */
  | { readonly kind: 'leaves'; readonly operation: MediumOperation; readonly byte: number }
  /** The operation affects only the first bytes of its range. */
  | { readonly kind: 'stopsAt'; readonly operation: MediumOperation; readonly bytes: number }
  /** After so many changes no further one is made; it reports that, or not. */
  | {
      readonly kind: 'writeProtects';
      readonly afterChanges: number;
      readonly silently: boolean;
    }
  | { readonly kind: 'flushFails' }
  /** Reads of the range return fewer bytes than requested. */
  | (Extent & { readonly kind: 'shortReads'; readonly bytes: number })
  /** Before its n-th operation it is pulled; the spare of that name takes its place. */
  | {
      readonly kind: 'pulled';
      readonly afterOperations: number;
      /** Empty: nothing takes its place. */
      readonly replacedBy: string;
    }
  /** Before its n-th operation another disk, of one region, is replaced by a spare. */
  | {
      readonly kind: 'swaps';
      readonly afterOperations: number;
      readonly disk: string;
      readonly replacedBy: string;
    }
  /** Before its n-th operation the spare of that name is plugged in. */
  | { readonly kind: 'brings'; readonly afterOperations: number; readonly disk: string }
  /**
   * From the n-th query of its identity on it reports another one; but only between these of its
   * operations.
   */
  | {
      readonly kind: 'says';
      readonly afterReads: number;
      readonly afterOperations: number;
      readonly operations: number;
      readonly field: 'serial' | 'wwn' | 'model';
      readonly text: string;
    }
  /** Listings from the n-th on, and so many, leave it out. */
  | { readonly kind: 'unlisted'; readonly afterListings: number; readonly listings: number };

type LieKind = Lie['kind'];

const extentKeys = ['offset', 'length'];
const keysOf: Readonly<Record<LieKind, readonly string[]>> = {
  ignores: extentKeys,
  wraps: ['everyBytes'],
  answers: [...extentKeys, 'byte', 'fromRead', 'reads'],
  losesAtPowerOff: ['flushed'],
  comesBack: ['operation', 'afterMs'],
  leaves: ['operation', 'byte'],
  stopsAt: ['operation', 'bytes'],
  writeProtects: ['afterChanges', 'silently'],
  flushFails: [],
  shortReads: [...extentKeys, 'bytes'],
  pulled: ['afterOperations', 'replacedBy'],
  swaps: ['afterOperations', 'disk', 'replacedBy'],
  brings: ['afterOperations', 'disk'],
  says: ['afterReads', 'afterOperations', 'operations', 'field', 'text'],
  unlisted: ['afterListings', 'listings'],
};

/** Reads one entry; throws for an invalid one. */
export function readLie(value: unknown, source: string): Lie {
  const kinds = Object.keys(keysOf) as LieKind[];
  const all = ['kind', ...new Set(Object.values(keysOf).flat())];
  const kind = pick(kinds, textAt(asObject(value, source, all), 'kind', ''), source);
  const object = asObject(value, `${source}, ${kind}`, ['kind', ...keysOf[kind]]);
  return readers[kind](object, source);
}

type LieOf<K extends LieKind> = Extract<Lie, { readonly kind: K }>;
type LieObject = ReturnType<typeof asObject>;

const readers: {
  readonly [K in LieKind]: (object: LieObject, source: string) => LieOf<K>;
} = {
  ignores: (object) => ({ kind: 'ignores', ...extentOf(object) }),
  wraps: (object) => ({ kind: 'wraps', everyBytes: numberAt(object, 'everyBytes', 0) }),
  answers: (object) => ({
    kind: 'answers',
    ...extentOf(object),
    byte: numberAt(object, 'byte', 0),
    fromRead: numberAt(object, 'fromRead', 0),
    reads: forEver(object, 'reads'),
  }),
  losesAtPowerOff: (object) => ({
    kind: 'losesAtPowerOff',
    flushed: flagAt(object, 'flushed', false),
  }),
  comesBack: (object, source) => ({
    kind: 'comesBack',
    operation: operationOf(object, source),
    afterMs: numberAt(object, 'afterMs', 0),
  }),
  leaves: (object, source) => ({
    kind: 'leaves',
    operation: operationOf(object, source),
    byte: numberAt(object, 'byte', 255),
  }),
  stopsAt: (object, source) => ({
    kind: 'stopsAt',
    operation: operationOf(object, source),
    bytes: numberAt(object, 'bytes', 0),
  }),
  writeProtects: (object) => ({
    kind: 'writeProtects',
    afterChanges: numberAt(object, 'afterChanges', 0),
    silently: flagAt(object, 'silently', false),
  }),
  flushFails: () => ({ kind: 'flushFails' }),
  shortReads: (object) => ({
    kind: 'shortReads',
    ...extentOf(object),
    bytes: numberAt(object, 'bytes', 0),
  }),
  pulled: (object) => ({
    kind: 'pulled',
    afterOperations: numberAt(object, 'afterOperations', 0),
    replacedBy: textAt(object, 'replacedBy', ''),
  }),
  swaps: (object) => ({
    kind: 'swaps',
    afterOperations: numberAt(object, 'afterOperations', 0),
    disk: textAt(object, 'disk', ''),
    replacedBy: textAt(object, 'replacedBy', ''),
  }),
  brings: (object) => ({
    kind: 'brings',
    afterOperations: numberAt(object, 'afterOperations', 0),
    disk: textAt(object, 'disk', ''),
  }),
  says: (object, source) => ({
    kind: 'says',
    field: pick(['serial', 'wwn', 'model'] as const, textAt(object, 'field', ''), source),
    text: textAt(object, 'text', ''),
    afterReads: numberAt(object, 'afterReads', 0),
    afterOperations: numberAt(object, 'afterOperations', 0),
    operations: forEver(object, 'operations'),
  }),
  unlisted: (object) => ({
    kind: 'unlisted',
    afterListings: numberAt(object, 'afterListings', 0),
    listings: forEver(object, 'listings'),
  }),
};

/** The part of an extent that an operation meets; undefined: none. */
export function meeting(extent: Extent, offset: number, length: number): Extent | undefined {
  const from = Math.max(extent.offset, offset);
  const to = Math.min(extent.offset + extent.length, offset + length);
  return from < to ? { offset: from, length: to - from } : undefined;
}

function extentOf(object: ToolJsonObject): Extent {
  return { offset: numberAt(object, 'offset', 0), length: forEver(object, 'length') };
}

function forEver(object: ToolJsonObject, key: string): number {
  return numberAt(object, key, Number.MAX_SAFE_INTEGER);
}

function operationOf(object: ToolJsonObject, source: string): MediumOperation {
  return pick(mediumOperations, textAt(object, 'operation', ''), source);
}

function pick<T extends string>(allowed: readonly T[], text: string, source: string): T {
  const found = allowed.find((each) => each === text);
  if (found === undefined) {
    throw new Error(`${source}: "${text}" must be one of ${allowed.join(', ')}`);
  }
  return found;
}
