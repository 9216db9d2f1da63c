/**
 * What a disk may say that is not so: about its content, about time, about its size, about what it
 * may do. Each lie is laid over a medium; the medium's file shows what is really there.
 *
 * 1. A lie never answers an error unless it is about errors: it reports success.
 * 2. Each time that a disk lies it tells so to the one that laid the lie: a lie that nobody met
 *    proves nothing.
 */
import {
  type BlockStore,
  type Change,
  lengthOf,
  MediumError,
  type MediumFault,
} from './block-store.ts';

const BLOCK_BYTES = 4096;

/** A stretch of a disk, in bytes. */
export interface Span {
  readonly offset: number;
  readonly length: number;
}

/** What a disk may do to the one that trusts it. */
export type Lie =
  /** A stretch keeps what it has, whatever is written there. */
  | { readonly kind: 'keeps'; readonly span: Span }
  /** Nothing is ever written. */
  | { readonly kind: 'keepsAll' }
  /** Discards and zeroings are reported as done and are not; data are written. */
  | { readonly kind: 'keepsOnDiscard' }
  /** A stretch reads as something that nobody wrote; the medium is as it should be. */
  | { readonly kind: 'misreads'; readonly span: Span }
  /** The first reading of a block shows what was written there last, later ones what it keeps. */
  | { readonly kind: 'truthfulOnce' }
  /** What is written stays in a memory that the power-off takes away; a flush changes nothing. */
  | { readonly kind: 'volatile' }
  /** After a discard it reads zeros for so long, then the data are back. */
  | { readonly kind: 'zeroesForAWhile'; readonly milliseconds: number }
  /** It admits only the first so many bytes of what it has. */
  | { readonly kind: 'hides'; readonly admittedBytes: number }
  /** After so many bytes were written it is write-protected. */
  | { readonly kind: 'protectsItselfAfter'; readonly bytes: number }
  /** A stretch answers errors. */
  | { readonly kind: 'breaks'; readonly span: Span; readonly on: 'read' | 'write' };

/** Called each time that a disk lies. */
type Tell = () => void;

/** Lays `lie` over a medium. `nowMs` is a clock that only goes forward. */
export function withLie(
  store: BlockStore,
  lie: Lie,
  nowMs: () => number,
  tell: Tell = () => undefined,
): BlockStore {
  switch (lie.kind) {
    case 'keeps':
      return { ...store, change: (change) => changeOutside(store, change, lie.span, tell) };
    case 'keepsAll':
      return { ...store, change: tell };
    case 'keepsOnDiscard':
      return {
        ...store,
        change: (change) => (change.kind === 'write' ? store.change(change) : tell()),
      };
    case 'misreads':
      return { ...store, read: (offset, length) => misread(store, offset, length, lie.span, tell) };
    case 'truthfulOnce':
      return truthfulOnce(store, tell);
    case 'volatile':
      return volatileStore(store, tell);
    case 'zeroesForAWhile':
      return zeroesForAWhile({ store, milliseconds: lie.milliseconds, nowMs, tell });
    case 'hides':
      return hides(store, lie.admittedBytes, tell);
    case 'protectsItselfAfter':
      return protectsItself(store, lie.bytes, tell);
    case 'breaks':
      return breaks(store, lie, tell);
  }
}

function overlaps(a: Span, b: Span): boolean {
  return a.offset < b.offset + b.length && b.offset < a.offset + a.length;
}

function spanOf(change: Change): Span {
  return { offset: change.offset, length: lengthOf(change) };
}

/** The part of a change between two offsets; undefined when there is none. */
function cut(change: Change, from: number, to: number): Change | undefined {
  const { offset, length } = spanOf(change);
  const [first, last] = [Math.max(offset, from), Math.min(offset + length, to)];
  if (first >= last) return undefined;
  if (change.kind !== 'write') return { ...change, offset: first, length: last - first };
  return { ...change, offset: first, bytes: change.bytes.subarray(first - offset, last - offset) };
}

function changeOutside(store: BlockStore, change: Change, kept: Span, tell: Tell): void {
  if (overlaps(spanOf(change), kept)) tell();
  const before = cut(change, 0, kept.offset);
  const after = cut(change, kept.offset + kept.length, Number.POSITIVE_INFINITY);
  for (const part of [before, after]) if (part !== undefined) store.change(part);
}

function misread(
  store: BlockStore,
  offset: number,
  length: number,
  span: Span,
  tell: Tell,
): Buffer {
  const bytes = store.read(offset, length);
  const from = Math.max(span.offset, offset) - offset;
  const to = Math.min(span.offset + span.length, offset + length) - offset;
  if (from < to) {
    tell();
    bytes.fill(0xa5, from, to);
  }
  return bytes;
}

/** Content of blocks by their number; what was zeroed takes no room. */
interface Overlay {
  put(change: Change): void;
  /** Lays over `bytes`, read at `offset`, what was put there. */
  show(offset: number, bytes: Buffer, seen: (block: number, isHeld: boolean) => void): void;
  forget(block: number): void;
  clear(): void;
  isEmpty(): boolean;
}

/** `below` gives what a block holds of which only a part is put. */
function createOverlay(below: BlockStore): Overlay {
  const blocks = new Map<number, Buffer>();
  const zero = Buffer.alloc(BLOCK_BYTES);
  const put = (change: Change): void => {
    const { offset, length } = spanOf(change);
    for (let at = offset; at < offset + length; ) {
      const block = Math.floor(at / BLOCK_BYTES);
      const from = at - block * BLOCK_BYTES;
      const part = Math.min(BLOCK_BYTES - from, offset + length - at);
      const isWholeZero = part === BLOCK_BYTES && change.kind !== 'write';
      if (isWholeZero) blocks.set(block, zero);
      else {
        const old = blocks.get(block) ?? below.read(block * BLOCK_BYTES, BLOCK_BYTES);
        const fresh = Buffer.from(old);
        if (change.kind === 'write')
          change.bytes.copy(fresh, from, at - offset, at - offset + part);
        else fresh.fill(0, from, from + part);
        blocks.set(block, fresh);
      }
      at += part;
    }
  };
  return {
    put,
    show: (offset, bytes, seen) => {
      for (let at = offset; at < offset + bytes.length; ) {
        const block = Math.floor(at / BLOCK_BYTES);
        const from = at - block * BLOCK_BYTES;
        const part = Math.min(BLOCK_BYTES - from, offset + bytes.length - at);
        const held = blocks.get(block);
        held?.copy(bytes, at - offset, from, from + part);
        seen(block, held !== undefined);
        at += part;
      }
    },
    forget: (block) => void blocks.delete(block),
    clear: () => blocks.clear(),
    isEmpty: () => blocks.size === 0,
  };
}

function truthfulOnce(store: BlockStore, tell: Tell): BlockStore {
  const shown = createOverlay(store);
  const forgotten = new Set<number>();
  return {
    ...store,
    change: shown.put,
    read: (offset, length) => {
      const bytes = store.read(offset, length);
      shown.show(offset, bytes, (block, isHeld) => {
        if (!isHeld && forgotten.has(block)) tell();
        if (!isHeld) return;
        shown.forget(block);
        forgotten.add(block);
      });
      return bytes;
    },
  };
}

function volatileStore(store: BlockStore, tell: Tell): BlockStore {
  const memory = createOverlay(store);
  return {
    ...store,
    change: memory.put,
    read: (offset, length) => {
      const bytes = store.read(offset, length);
      memory.show(offset, bytes, () => undefined);
      return bytes;
    },
    powerOff: () => {
      if (!memory.isEmpty()) tell();
      memory.clear();
      store.powerOff();
    },
  };
}

function zeroesForAWhile(options: {
  readonly store: BlockStore;
  readonly milliseconds: number;
  readonly nowMs: () => number;
  readonly tell: Tell;
}): BlockStore {
  const { store, milliseconds, nowMs, tell } = options;
  const discarded: { readonly span: Span; readonly untilMs: number }[] = [];
  return {
    ...store,
    change: (change) => {
      if (change.kind === 'write') {
        store.change(change);
        return;
      }
      discarded.push({ span: spanOf(change), untilMs: nowMs() + milliseconds });
    },
    read: (offset, length) => {
      const bytes = store.read(offset, length);
      for (const { span, untilMs } of discarded) {
        if (nowMs() >= untilMs) continue;
        const from = Math.max(span.offset, offset) - offset;
        const to = Math.min(span.offset + span.length, offset + length) - offset;
        if (from >= to) continue;
        tell();
        bytes.fill(0, from, to);
      }
      return bytes;
    },
  };
}

function hides(store: BlockStore, admittedBytes: number, tell: Tell): BlockStore {
  return {
    ...store,
    sizeBytes: Math.min(store.sizeBytes, admittedBytes),
    change: (change) => {
      tell();
      store.change(change);
    },
  };
}

function protectsItself(store: BlockStore, bytesMax: number, tell: Tell): BlockStore {
  let written = 0;
  return {
    ...store,
    change: (change) => {
      const left = Math.max(0, bytesMax - written);
      const accepted = cut(change, 0, change.offset + left);
      written += lengthOf(change);
      if (accepted !== undefined) store.change(accepted);
      if (lengthOf(change) <= left) return;
      tell();
      throw new MediumError('writeProtected');
    },
  };
}

function breaks(
  store: BlockStore,
  { span, on }: Lie & { readonly kind: 'breaks' },
  tell: Tell,
): BlockStore {
  const refuse = (access: Span, fault: MediumFault): void => {
    if (!overlaps(access, span)) return;
    tell();
    throw new MediumError(fault);
  };
  return {
    ...store,
    read: (offset, length) => {
      if (on === 'read') refuse({ offset, length }, 'unreadable');
      return store.read(offset, length);
    },
    change: (change) => {
      if (on === 'write') refuse(spanOf(change), 'unwritable');
      store.change(change);
    },
  };
}
