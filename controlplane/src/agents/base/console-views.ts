/**
 * Consoles of hosts on their way to viewers. A view is requested from the session of the rack that
 * is connected to this replica, is passed on, and is stored nowhere.
 *
 * 1. Output counts only from the rack that was asked, and only for the host in question.
 * 2. Views are bounded, and so is the output that waits for a viewer. A slow viewer loses the
 *    oldest bytes and learns how many; neither the agent nor another viewer waits for it.
 * 3. The agent gets an acknowledgement after each `creditBytesMin`, also for a slow viewer. That
 *    bounds the output in transit, so that no report waits behind much of it.
 * 4. A view ends with the session from which it was requested.
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
import type { CredentialOpener } from '../../secrets/index.ts';
import { giveBmcSecret } from './bmc-secret.ts';

export const viewsMax = 256;
export const viewsPerRackMax = 16;
/** The most output that waits for one viewer. */
export const waitingBytesMax = 256 * 1024;
/** The largest piece of output: a larger one is dropped. */
export const pieceBytesMax = 16 * 1024;
/** After this many bytes the agent gets an acknowledgement. */
const creditBytesMin = 16 * 1024;

/** `credentialVersion` of its BMC is filled in when the secret is opened. */
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
export type ViewerOutput =
  | {
      readonly kind: 'output';
      readonly content: Uint8Array;
      /** Bytes that were lost directly before it. */
      readonly droppedBytes: bigint;
      readonly state: ConsoleState;
      readonly message: string;
    }
  | { readonly kind: 'failed'; readonly failure: FailureType; readonly message: string }
  /** The session has ended. */
  | { readonly kind: 'gone' };

export interface ConsoleView {
  /** Undefined: the call was cancelled. One call at a time. */
  next(signal: AbortSignal): Promise<ViewerOutput | undefined>;
  /** The viewer has gone. */
  close(): void;
}

export interface ConsoleViewsDependencies extends CredentialOpener {
  readonly registry: SessionRegistry;
  readonly audit: AuditSink;
}

/** Output of an `agent.ConsoleOutput` that waits. */
type Piece = Extract<ViewerOutput, { readonly kind: 'output' }>;

interface Viewer {
  readonly session: LiveSession;
  readonly hostUid: HostUid;
  readonly waiting: OutputQueue;
}

export class ConsoleViews {
  readonly #deps: ConsoleViewsDependencies;
  readonly #viewers = new Map<string, Viewer>();
  /** By session: the bytes received, and how many of them were acknowledged. */
  readonly #taken = new WeakMap<LiveSession, { bytes: number; sent: number }>();
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
    const viewer = { session, hostUid: question.hostUid, waiting: new OutputQueue() };
    // It counts from here on: many callers may ask at once.
    this.#viewers.set(id, viewer);
    const given = await giveBmcSecret(this.#deps, session, question.bmc).catch((error: unknown) => {
      this.#viewers.delete(id);
      throw error;
    });
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
  receiveOutput(rackId: RackId, output: agent.ConsoleOutput): void {
    const session = this.#deps.registry.sessionOf(rackId);
    if (session === undefined) return;
    this.#sendCredit(session, output.content.length);
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
  #sendCredit(session: LiveSession, length: number): void {
    const taken = this.#taken.get(session) ?? { bytes: 0, sent: 0 };
    taken.bytes += length;
    this.#taken.set(session, taken);
    if (taken.bytes - taken.sent < creditBytesMin) return;
    taken.sent = taken.bytes;
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

/** Output that waits for one viewer. Bounded; the oldest bytes are dropped first. */
class OutputQueue {
  readonly #pieces: Piece[] = [];
  #bytes = 0;
  #droppedBytes = 0n;
  /** The last state and message among the dropped pieces. */
  #word: Pick<Piece, 'state' | 'message'> | undefined;
  #end: ViewerOutput | undefined;
  #wake: () => void = () => undefined;

  push(piece: Piece): void {
    this.#pieces.push(piece);
    this.#bytes += piece.content.length;
    this.#makeRoom();
    this.#wake();
  }

  /** Delivered after the waiting output. */
  end(shown: ViewerOutput): void {
    this.#end ??= shown;
    this.#wake();
  }

  async next(signal: AbortSignal): Promise<ViewerOutput | undefined> {
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

/** Pieces that wait for one viewer; a serial port that sends single bytes makes small ones. */
const piecesMax = 4_096;
/** Of a message of the agent. */
const messageCharactersMax = 1_024;
