/**
 * Consoles of hosts on their way to people who look: asked of the session of the rack that is
 * connected here, passed on, kept nowhere.
 *
 * 1. Only the rack that was asked is heard, and only for the host that it was asked about.
 * 2. Views are bounded, and so is what waits for a viewer. Who takes it too slowly loses the oldest
 *    bytes and is told how many; neither the agent nor another viewer waits for it.
 * 3. Taking is told to the agent once for each so many bytes, whoever is slow: that bounds what is
 *    under way, so that no report waits behind much of it.
 * 4. A view ends with the session that it was asked of.
 */
import { create } from '@bufbuild/protobuf';
import {
  agent,
  ConsoleState,
  ConsoleStateSchema,
  FailureType,
  type HostUid,
  type RackId,
} from '@rackwright/messages';
import type { AuditSink } from '../../audit/index.ts';
import type { LiveSession, SessionRegistry } from '../../host/index.ts';
import type { Vault } from '../../secrets/index.ts';
import { giveBmcSecret } from './bmc-secret.ts';

export const viewsMax = 256;
export const viewsPerRackMax = 16;
/** Of one viewer. */
export const waitingBytesMax = 256 * 1024;
/** Of one piece: an agent that sends more is not heard with it. */
export const pieceBytesMax = 16 * 1024;
/** After so many bytes the agent is told that they were taken. */
const tellTakenBytes = 16 * 1024;

/** `credentialVersion` of its BMC is filled in as the secret is opened. */
export type ConsoleQuestion = Omit<agent.WatchConsole, '$typeName' | '$unknown' | 'id'> & {
  readonly bmc: agent.BmcAccess;
};

export type ConsoleViewResult =
  | { readonly kind: 'open'; readonly view: ConsoleView }
  /** As of `BmcReads`. */
  | { readonly kind: 'noAgent' }
  | { readonly kind: 'agentCannot' }
  | { readonly kind: 'noSecret'; readonly message: string }
  | { readonly kind: 'tooMany'; readonly waiting: number };

/** What a viewer gets next. */
export type Shown =
  | {
      readonly kind: 'output';
      readonly content: Uint8Array;
      /** Missing right before it. */
      readonly droppedBytes: bigint;
      readonly state: ConsoleState;
      readonly message: string;
    }
  | { readonly kind: 'failed'; readonly failure: FailureType; readonly message: string }
  /** The session has ended. */
  | { readonly kind: 'gone' };

export interface ConsoleView {
  /** Undefined: the call has been given up. One call at a time. */
  next(signal: AbortSignal): Promise<Shown | undefined>;
  /** Nobody looks any more. */
  close(): void;
}

export interface ConsoleViewsDependencies extends Vault {
  readonly registry: SessionRegistry;
  readonly audit: AuditSink;
}

/** What waits of an `agent.ConsoleOutput`. */
type Piece = Extract<Shown, { readonly kind: 'output' }>;

interface Viewer {
  readonly session: LiveSession;
  readonly hostUid: HostUid;
  readonly waiting: Waiting;
}

export class ConsoleViews {
  readonly #deps: ConsoleViewsDependencies;
  readonly #viewers = new Map<string, Viewer>();
  /** By session: bytes that it has brought, and how many of them were told as taken. */
  readonly #taken = new WeakMap<LiveSession, { bytes: number; told: number }>();
  #next = 1;

  constructor(deps: ConsoleViewsDependencies) {
    this.#deps = deps;
    deps.registry.onChange((rackId) => this.#gone(rackId));
  }

  async open(rackId: RackId, question: ConsoleQuestion): Promise<ConsoleViewResult> {
    const session = this.#deps.registry.sessionOf(rackId);
    if (session === undefined) return { kind: 'noAgent' };
    if (!session.watchesConsoles) return { kind: 'agentCannot' };
    const viewers = [...this.#viewers.values()];
    const waiting = viewers.filter((one) => one.session.rackId === rackId).length;
    if (viewers.length >= viewsMax || waiting >= viewsPerRackMax) {
      return { kind: 'tooMany', waiting };
    }
    const id = `${this.#next}`;
    this.#next += 1;
    const viewer = { session, hostUid: question.hostUid, waiting: new Waiting() };
    // It counts from here on: many may ask at once.
    this.#viewers.set(id, viewer);
    const given = await giveBmcSecret(this.#deps, session, question.bmc);
    if (given.kind !== 'given') {
      this.#viewers.delete(id);
      return given;
    }
    const bmc = { ...question.bmc, credentialVersion: given.version };
    const value = create(agent.WatchConsoleSchema, { ...question, bmc, id });
    session.send({ case: 'watchConsole', value });
    return { kind: 'open', view: this.#viewOf(id, viewer) };
  }

  /** An agent has sent a piece. */
  took(rackId: RackId, output: agent.ConsoleOutput): void {
    const session = this.#deps.registry.sessionOf(rackId);
    if (session === undefined) return;
    this.#tellTaken(session, output.content.length);
    const viewer = this.#viewers.get(output.id);
    if (viewer?.session !== session || viewer.hostUid !== output.hostUid) return;
    if (output.content.length > pieceBytesMax) return;
    const message = output.message.slice(0, messageCharactersMax);
    const { failure, droppedBytes } = output;
    if (failure !== FailureType.UNSPECIFIED) {
      viewer.waiting.end({ kind: 'failed', failure, message });
      return;
    }
    // A copy: the message that it came in may be much larger.
    const content = Uint8Array.from(output.content);
    const isKnown = ConsoleStateSchema.value[output.state] !== undefined;
    const state = isKnown ? output.state : ConsoleState.UNSPECIFIED;
    viewer.waiting.push({ kind: 'output', content, droppedBytes, state, message });
  }

  #viewOf(id: string, { session, waiting }: Viewer): ConsoleView {
    return {
      next: (signal) => waiting.next(signal),
      close: () => {
        if (!this.#viewers.delete(id)) return;
        waiting.end({ kind: 'gone' });
        session.send({ case: 'endConsole', value: create(agent.EndConsoleSchema, { id }) });
      },
    };
  }

  /** (3) */
  #tellTaken(session: LiveSession, length: number): void {
    const taken = this.#taken.get(session) ?? { bytes: 0, told: 0 };
    taken.bytes += length;
    this.#taken.set(session, taken);
    if (taken.bytes - taken.told < tellTakenBytes) return;
    taken.told = taken.bytes;
    const value = create(agent.ConsoleTakenSchema, { bytes: BigInt(taken.bytes) });
    session.send({ case: 'consoleTaken', value });
  }

  /** (4) */
  #gone(rackId: RackId): void {
    const present = this.#deps.registry.sessionOf(rackId);
    for (const [id, { session, waiting }] of this.#viewers) {
      if (session.rackId !== rackId || session === present) continue;
      this.#viewers.delete(id);
      waiting.end({ kind: 'gone' });
    }
  }
}

/** What waits for one viewer. Bounded; the oldest bytes make room. */
class Waiting {
  readonly #pieces: Piece[] = [];
  #bytes = 0;
  #droppedBytes = 0n;
  /** The last word among what was left out. */
  #word: Pick<Piece, 'state' | 'message'> | undefined;
  #end: Shown | undefined;
  #wake: () => void = () => undefined;

  push(piece: Piece): void {
    this.#pieces.push(piece);
    this.#bytes += piece.content.length;
    this.#makeRoom();
    this.#wake();
  }

  /** After what waits. */
  end(shown: Shown): void {
    this.#end ??= shown;
    this.#wake();
  }

  async next(signal: AbortSignal): Promise<Shown | undefined> {
    while (!signal.aborted) {
      const piece = this.#pieces.shift();
      if (piece !== undefined) return this.#shown(piece);
      if (this.#end !== undefined) return this.#end;
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          signal.removeEventListener('abort', wake);
          resolve();
        };
        this.#wake = wake;
        signal.addEventListener('abort', wake, { once: true });
      });
    }
    return undefined;
  }

  #shown(piece: Piece): Piece {
    this.#bytes -= piece.content.length;
    const droppedBytes = piece.droppedBytes + this.#droppedBytes;
    this.#droppedBytes = 0n;
    const word = piece.state === ConsoleState.UNSPECIFIED ? this.#word : undefined;
    this.#word = undefined;
    return { ...piece, ...word, droppedBytes };
  }

  /** (2) */
  #makeRoom(): void {
    while (this.#bytes > waitingBytesMax || this.#pieces.length > piecesMax) {
      const oldest = this.#pieces.shift();
      if (oldest === undefined) return;
      this.#bytes -= oldest.content.length;
      const { state, message } = oldest;
      if (state !== ConsoleState.UNSPECIFIED) this.#word = { state, message };
      this.#droppedBytes += oldest.droppedBytes + BigInt(oldest.content.length);
    }
  }
}

/** Pieces that wait for one viewer; a serial port that tells byte by byte makes small ones. */
const piecesMax = 4_096;
/** Of a word of the agent. */
const messageCharactersMax = 1_024;
