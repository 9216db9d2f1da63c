/**
 * One write, carried to a certain outcome where possible.
 *
 * W1 Every attempt of a write carries the same write id and a revision to compare with, so that at
 *    most one of them is ever stored, late ones included.
 * W2 A repetition is made, and `conflict` answered, only after a read by the leader; if an attempt
 *    was uncertain, only when the write is not among the key's kept changes.
 * W3 An outcome that is uncertain when the time is up is `unknown`.
 */
import { errorText } from '@rackwright/platform';
import type { ExpectedRevision, StoreRevision, WriteId, WriteResult } from '../contract.ts';
import { decideWrite, readResult, type StoredChange } from '../write.ts';
import type { PublishOutcome } from './channel.ts';
import { retryDelayMs } from './options.ts';

export interface WriteRequest {
  readonly key: string;
  /** Missing: delete. */
  readonly value?: Uint8Array;
  readonly expected: ExpectedRevision;
  readonly writeId: WriteId;
  /** The caller chose the id, and may have sent it before. */
  readonly mayHaveLanded: boolean;
}

/** The parts of a write: a `Channel`, and how often it is repeated. */
export interface WritePath {
  publish(
    key: string,
    value: Uint8Array | undefined,
    previous: StoreRevision,
    writeId: WriteId,
  ): Promise<PublishOutcome>;
  last(key: string): Promise<StoredChange | undefined>;
  at(revision: StoreRevision): Promise<StoredChange | undefined>;
  pause(delayMs: number): Promise<void>;
  /** Whether there is time for another attempt. */
  hasTime(): boolean;
}

export async function carryWrite(path: WritePath, write: WriteRequest): Promise<WriteResult> {
  const { key, expected, writeId } = write;
  let previous = expected === 'absent' ? 0 : expected;
  let mayHaveLanded = write.mayHaveLanded;
  for (let attempt = 1; ; attempt += 1) {
    const outcome = await path.publish(key, write.value, previous, writeId);
    if (outcome.kind === 'stored') return { kind: 'ok', revision: outcome.revision, writeId };
    let reason = 'the server and its leader disagree about the last revision';
    if (outcome.kind === 'uncertain') {
      mayHaveLanded = true;
      reason = outcome.reason;
    }
    if (outcome.kind === 'uncertain' || attempt > 1) await path.pause(retryDelayMs(attempt));
    const seen = await reread(path, write, mayHaveLanded);
    if (seen.kind === 'settled') return seen.result;
    if (seen.kind === 'open') previous = seen.previous;
    if (seen.kind === 'unread') reason = seen.reason;
    if (!path.hasTime()) return { kind: 'unknown', writeId, reason };
  }
}

type Reread =
  | { readonly kind: 'settled'; readonly result: WriteResult }
  /** Still possible, after this revision. */
  | { readonly kind: 'open'; readonly previous: StoreRevision }
  | { readonly kind: 'unread'; readonly reason: string };

async function reread(
  path: WritePath,
  write: WriteRequest,
  mayHaveLanded: boolean,
): Promise<Reread> {
  const { key, expected, writeId } = write;
  try {
    const last = await path.last(key);
    const decision = decideWrite(last, expected, writeId);
    if (decision.kind === 'landed')
      return settled({ kind: 'ok', revision: decision.revision, writeId });
    const earlier = mayHaveLanded ? await findBack(path, last, writeId) : undefined;
    if (earlier !== undefined) return settled({ kind: 'ok', revision: earlier, writeId });
    if (decision.kind === 'write') return { kind: 'open', previous: decision.previous };
    return settled({
      kind: 'conflict',
      current: { ...readResult(key, last), asOf: last?.revision ?? 0 },
    });
  } catch (error) {
    return { kind: 'unread', reason: errorText(error) };
  }
}

function settled(result: WriteResult): Reread {
  return { kind: 'settled', result };
}

/** The revision of the write among the changes before `last`, as far as they are kept. */
async function findBack(
  path: Pick<WritePath, 'at'>,
  last: StoredChange | undefined,
  writeId: WriteId,
): Promise<StoreRevision | undefined> {
  for await (const change of changesBack(path, last)) {
    if (change.writeId === writeId) return change.revision;
  }
  return undefined;
}

/** `last` and the kept changes of its key before it, newest first. */
export async function* changesBack(
  path: Pick<WritePath, 'at'>,
  last: StoredChange | undefined,
): AsyncGenerator<StoredChange, void, undefined> {
  let change = last;
  while (change !== undefined) {
    yield change;
    change = change.previous === 0 ? undefined : await path.at(change.previous);
  }
}
