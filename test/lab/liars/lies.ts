/**
 * What a disk may say that is not so: about its content, about time, about its size, about what it
 * may do. Each lie is laid over a medium; the medium's file shows what is really there.
 *
 * 1. A lie never answers an error unless it is about errors: it reports success.
 */
import { type BlockStore, type Change, lengthOf, MediumError } from './block-store.ts';

const BLOCK_BYTES = 4096;

/** A stretch of a disk, in bytes. */
export interface Span {
  readonly offset: number;
  readonly length: number;
}

/** What a disk may do to the one that believes it. */
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

/** Lays `lie` over a medium. `nowMs` is a clock that only goes forward. */
export function withLie(store: BlockStore, lie: Lie, nowMs: () => number): BlockStore {
  switch (lie.kind) {
    case 'keeps':
      return { ...store, change: (change) => changeOutside(store, change, lie.span) };
    case 'keepsAll':
      return { ...store, change: () => undefined };
    case 'keepsOnDiscard':
      return {
        ...store,
        change: (change) => (change.kind === 'write' ? store.change(change) : undefined),
      };
    case 'misreads':
      return { ...store, read: (offset, length) => misread(store, offset, length, lie.span) };
    case 'truthfulOnce':
      return truthfulOnce(store);
    case 'volatile':
      return volatileStore(store);
    case 'zeroesForAWhile':
      return zeroesForAWhile(store, lie.milliseconds, nowMs);
    case 'hides':
      return { ...store, sizeBytes: Math.min(store.sizeBytes, lie.admittedBytes) };
    case 'protectsItselfAfter':
      return protectsItself(store, lie.bytes);
    case 'breaks':
      return breaks(store, lie.span, lie.on);
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

function changeOutside(store: BlockStore, change: Change, kept: Span): void {
  const before = cut(change, 0, kept.offset);
  const after = cut(change, kept.offset + kept.length, Number.POSITIVE_INFINITY);
  for (const part of [before, after]) if (part !== undefined) store.change(part);
}

function misread(store: BlockStore, offset: number, length: number, span: Span): Buffer {
  const bytes = store.read(offset, length);
  const from = Math.max(span.offset, offset) - offset;
  const to = Math.min(span.offset + span.length, offset + length) - offset;
  if (from < to) bytes.fill(0xa5, from, to);
  return bytes;
}

/** Content of blocks by their number; what was zeroed takes no room. */
interface Overlay {
  put(change: Change): void;
  /** Lays over `bytes`, read at `offset`, what was put there, and tells each block it took. */
  show(offset: number, bytes: Buffer, taken: (block: number) => void): void;
  forget(block: number): void;
  clear(): void;
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
    show: (offset, bytes, taken) => {
      for (let at = offset; at < offset + bytes.length; ) {
        const block = Math.floor(at / BLOCK_BYTES);
        const from = at - block * BLOCK_BYTES;
        const part = Math.min(BLOCK_BYTES - from, offset + bytes.length - at);
        const held = blocks.get(block);
        held?.copy(bytes, at - offset, from, from + part);
        if (held !== undefined) taken(block);
        at += part;
      }
    },
    forget: (block) => void blocks.delete(block),
    clear: () => blocks.clear(),
  };
}

function truthfulOnce(store: BlockStore): BlockStore {
  const shown = createOverlay(store);
  return {
    ...store,
    change: shown.put,
    read: (offset, length) => {
      const bytes = store.read(offset, length);
      shown.show(offset, bytes, shown.forget);
      return bytes;
    },
  };
}

function volatileStore(store: BlockStore): BlockStore {
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
      memory.clear();
      store.powerOff();
    },
  };
}

function zeroesForAWhile(store: BlockStore, milliseconds: number, nowMs: () => number): BlockStore {
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
        if (from < to) bytes.fill(0, from, to);
      }
      return bytes;
    },
  };
}

function protectsItself(store: BlockStore, bytesMax: number): BlockStore {
  let written = 0;
  return {
    ...store,
    change: (change) => {
      const left = Math.max(0, bytesMax - written);
      const accepted = cut(change, 0, change.offset + left);
      written += lengthOf(change);
      if (accepted !== undefined) store.change(accepted);
      if (lengthOf(change) > left) throw new MediumError('writeProtected');
    },
  };
}

function breaks(store: BlockStore, span: Span, on: 'read' | 'write'): BlockStore {
  return {
    ...store,
    read: (offset, length) => {
      if (on === 'read' && overlaps({ offset, length }, span)) throw new MediumError('unreadable');
      return store.read(offset, length);
    },
    change: (change) => {
      if (on === 'write' && overlaps(spanOf(change), span)) throw new MediumError('unwritable');
      store.change(change);
    },
  };
}
