/**
 * The agent's journal: state that must survive a crash, in a file that only grows until it is
 * rewritten.
 *
 * J1 `append` resolves only once its records are durable; they become `state` at that moment. They
 *    are written in one frame, or with a rewrite: all of them or none.
 * J2 After a failed append nothing is added behind it, because what the disk kept is unknown: the
 *    next append replaces the whole file (R4: no fsync, no destructive step).
 * J3 The id is random and made once; a journal that is lost or damaged gets a new one. The
 *    generation rises at each start, durably, before anybody can see it (R9).
 * J4 A rewrite keeps everything that `state` holds: each unanswered report, each operation, each
 *    open grant.
 */
import type { agent } from '@rackwright/messages';
import {
  type AppendFile,
  type Clock,
  type Disk,
  type Log,
  type Random,
  randomId,
} from '@rackwright/platform';
import { encodeFrames, framePayloadBytesMax, readFrames } from './frame.ts';
import {
  addRecords,
  applyRecords,
  emptyJournal,
  type JournalState,
  makeRecord,
  type OwnState,
  type RecordInit,
  recordsOf,
} from './state.ts';

/** The file is rewritten when it has grown past this, and past twice its last rewrite. */
const rewriteAtBytesDefault = 1024 * 1024;
/** Earlier starts that are remembered; an operation of an older one counts as lost. */
const earlierLivesMax = 32;
const ownerOnlyMode = 0o600;

export interface JournalOptions {
  readonly disk: Disk;
  /** The journal's file; its folder must exist. */
  readonly path: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly rewriteAtBytes?: number;
  /** The maximum size of a frame. */
  readonly frameBytesMax?: number;
}

interface QueuedAppend {
  readonly records: readonly agent.JournalRecord[];
  done(): void;
  failed(error: unknown): void;
}

export class Journal {
  readonly #options: JournalOptions;
  #state: OwnState;
  /** Undefined when the file must be rewritten before anything is added (J2). */
  #file: AppendFile | undefined;
  #sizeBytes = 0;
  #rewriteAtBytes = 0;
  #waiting: QueuedAppend[] = [];
  #writing: Promise<void> | undefined;

  private constructor(options: JournalOptions, state: OwnState) {
    this.#options = options;
    this.#state = state;
  }

  /**
   * Opens the journal, or makes one, and raises its generation. Rejects when the disk does: an
   * agent without a journal must not start.
   */
  static async open(options: JournalOptions): Promise<Journal> {
    const before = await load(options);
    const journal = new Journal(options, nextLife(before, options.random));
    await journal.#write([]);
    return journal;
  }

  /** All that is durable. After each append a new object replaces it, and takes its operations. */
  get state(): JournalState {
    return this.#state;
  }

  /** Makes records durable, in the order of the calls (J1). Rejects when they may not be. */
  append(...records: readonly RecordInit[]): Promise<void> {
    const timeMs = this.#options.clock.nowMs();
    const added = records.map((record) => makeRecord(timeMs, record));
    return new Promise((done, failed) => {
      this.#waiting.push({ records: added, done, failed });
      this.#writing ??= this.#writeWaiting();
    });
  }

  /** Waits for the write under way, then releases the file. Later appends reopen it. */
  async close(): Promise<void> {
    await this.#writing;
    await this.#letGo();
  }

  /** One frame for all records that arrived during the last write. */
  async #writeWaiting(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      try {
        await this.#write(batch.flatMap(({ records }) => records));
        for (const { done } of batch) done();
      } catch (error) {
        for (const { failed } of batch) failed(error);
      }
    }
    this.#writing = undefined;
  }

  async #write(records: readonly agent.JournalRecord[]): Promise<void> {
    const [frame, ...more] = this.#encoded(records);
    const sizeBytes = this.#sizeBytes + (frame?.length ?? 0);
    const fits = more.length === 0 && sizeBytes <= this.#rewriteAtBytes;
    if (fits && frame !== undefined && this.#file !== undefined) {
      await this.#add(this.#file, frame);
      this.#state = addRecords(this.#state, records);
    } else {
      const next = applyRecords(this.#state, records);
      await this.#rewrite(next);
      this.#state = next;
    }
  }

  async #add(file: AppendFile, frame: Uint8Array): Promise<void> {
    try {
      await file.append(frame);
      this.#sizeBytes += frame.length;
    } catch (error) {
      await this.#letGo();
      throw error;
    }
  }

  async #rewrite(next: JournalState): Promise<void> {
    const { disk, path, rewriteAtBytes = rewriteAtBytesDefault } = this.#options;
    await this.#letGo();
    const file = Buffer.concat(this.#encoded(recordsOf(next)));
    await disk.writeAtomic(path, file, ownerOnlyMode);
    this.#file = await disk.openAppend(path);
    this.#sizeBytes = file.length;
    this.#rewriteAtBytes = Math.max(rewriteAtBytes, 2 * file.length);
  }

  #encoded(records: readonly agent.JournalRecord[]): Uint8Array[] {
    return encodeFrames(records, this.#options.frameBytesMax ?? framePayloadBytesMax);
  }

  async #letGo(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    // The file is done with; that it cannot be closed changes nothing that was promised.
    await file?.close().catch((error: unknown) => {
      this.#options.log.warn({}, 'the journal file did not close', error);
    });
  }
}

/**
 * A new start of the journal (J3). Generations alone would not reveal a journal that was restored
 * from an older copy: it reaches the same generations again.
 */
function nextLife(before: OwnState, random: Random): OwnState {
  const bytes = random.bytes(8);
  const life = new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0) | 1n;
  const lives = before.life === 0n ? [] : [before.life, ...before.earlierLives];
  const generation = before.generation + 1n;
  return { ...before, generation, life, earlierLives: lives.slice(0, earlierLivesMax) };
}

/** The content of the file, or an empty journal under a new id (J3). */
async function load({ disk, path, random, log }: JournalOptions): Promise<OwnState> {
  const fresh = { ...applyRecords(emptyJournal, []), id: randomId(random) };
  const file = await disk.read(path);
  if (file === undefined) {
    log.info({ journal: fresh.id }, 'made a new journal');
    return fresh;
  }
  const contents = readFrames(file);
  const records = contents.kind === 'damaged' ? [] : contents.records;
  const state = applyRecords(emptyJournal, records);
  if (contents.kind === 'damaged' || state.id === '') {
    const problem = contents.kind === 'damaged' ? contents.problem : 'it names no journal';
    const kept = `${path}.damaged`;
    await disk.writeAtomic(kept, file, ownerOnlyMode);
    log.error(
      { problem, kept, journal: fresh.id },
      'the journal is lost; a new one takes its place',
    );
    return fresh;
  }
  if (contents.kind === 'torn') {
    log.warn({ cutBytes: contents.cutBytes }, 'cut an unfinished write off the journal');
  }
  return state;
}
