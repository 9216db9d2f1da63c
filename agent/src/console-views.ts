/**
 * Shows consoles of hosts to people who read through the control plane. A view is no operation:
 * nothing is journalled, and nothing here writes to a console.
 *
 * V1 A view is a preemptible call: every action on the BMC stops it, and it ends nobody else's
 *    session. While it waits it says so, and it tries again.
 * V2 A BMC that is not the expected one is heard no further.
 * V3 Reports come first: one piece is sent at a time, and only a bounded number of bytes is ahead
 *    of the receiver's acknowledgements. Beyond that the oldest bytes are left out, and their
 *    number is reported.
 * V4 A view ends with the session that asked for it: the console of a BMC that nobody can watch is
 *    released.
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import type { BmcConsole, BmcDriver } from '@rackwright/bmc';
import { agent, ConsoleState, FailureType, failureTypeOf } from '@rackwright/messages';
import type { Cancel, Clock, Log } from '@rackwright/platform';
import { boundText, type FinalResult, messageBytesMax } from '@rackwright/results';
import { Scrollback, type SharedConsoles } from './console/index.ts';
import {
  type BmcDrivers,
  expectBmc,
  failure,
  resolveBmc,
  resultOfBmc,
} from './operations/index.ts';
import type { AgentSession, ConsoleReceiver } from './session/index.ts';

export interface ConsoleViewLimits {
  readonly viewsMax: number;
  /** Bytes of one view, while they wait to be sent. */
  readonly pendingBytesMax: number;
  readonly pieceBytesMax: number;
  /** Time between two pieces, of all views together. */
  readonly pieceEveryMs: number;
  /** Sent and not yet taken, of all views together. */
  readonly untakenBytesMax: number;
  readonly retryMs: number;
  /** The interval of checks whether the session is still open. */
  readonly sessionCheckMs: number;
}

export const defaultConsoleViewLimits: ConsoleViewLimits = {
  viewsMax: 32,
  pendingBytesMax: 64 * 1024,
  pieceBytesMax: 16 * 1024,
  pieceEveryMs: 50,
  untakenBytesMax: 64 * 1024,
  retryMs: 5_000,
  sessionCheckMs: 30_000,
};

export interface ConsoleViewParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly drivers: {
    driver(
      ...args: Parameters<BmcDrivers['driver']>
    ): Pick<BmcDriver, 'readIdentity' | 'openConsole'>;
  };
  readonly consoles: SharedConsoles;
  readonly session: () => Pick<AgentSession, 'credential' | 'status' | 'reportConsole'>;
  readonly limits?: ConsoleViewLimits;
}

/** The state of a view; sent behind the earlier bytes. */
type ConsoleNotice = Pick<
  MessageInitShape<typeof agent.ConsoleOutputSchema>,
  'state' | 'failure'
> & {
  readonly message: string;
};

interface View {
  readonly order: agent.WatchConsole;
  readonly pending: Scrollback;
  readonly abort: AbortController;
  /** Up to where in all that the console has shown. */
  end: number;
  notice: ConsoleNotice | undefined;
  cancelRetry: Cancel;
}

export class RackConsoles implements ConsoleReceiver {
  readonly #parts: ConsoleViewParts;
  readonly #limits: ConsoleViewLimits;
  /** By id; a view that was sent a piece moves to the end. */
  readonly #views = new Map<string, View>();
  #sentBytes = 0;
  #takenBytes = 0;
  #cancelPiece: Cancel | undefined;
  #cancelCheck: Cancel | undefined;

  constructor(parts: ConsoleViewParts) {
    this.#parts = parts;
    this.#limits = parts.limits ?? defaultConsoleViewLimits;
  }

  /** (V4) */
  sessionOpened(): void {
    this.stop();
    this.#sentBytes = 0;
    this.#takenBytes = 0;
  }

  watch(order: agent.WatchConsole): void {
    const { viewsMax, pendingBytesMax } = this.#limits;
    if (this.#views.has(order.id)) return;
    const view: View = {
      ...{ order, pending: new Scrollback(pendingBytesMax), abort: new AbortController() },
      ...{ end: 0, notice: undefined, cancelRetry: () => undefined },
    };
    const isFull = this.#views.size >= viewsMax;
    this.#views.set(order.id, view);
    this.#checkLater();
    if (isFull) {
      const message = `${viewsMax} consoles are shown by this agent already`;
      return this.#say(view, { failure: FailureType.CONFLICT, message });
    }
    this.#catchUp(view);
    void this.#hear(view);
  }

  end(id: string): void {
    const view = this.#views.get(id);
    this.#views.delete(id);
    view?.cancelRetry();
    view?.abort.abort();
  }

  taken(bytes: number): void {
    this.#takenBytes = Math.max(this.#takenBytes, Math.min(bytes, this.#sentBytes));
    this.#sendSoon();
  }

  stop(): void {
    for (const id of [...this.#views.keys()]) this.end(id);
    this.#cancelPiece?.();
    this.#cancelPiece = undefined;
    this.#cancelCheck?.();
    this.#cancelCheck = undefined;
  }

  /** (V4) The next session may not open for days. */
  #checkLater(): void {
    const { clock, session } = this.#parts;
    this.#cancelCheck ??= clock.after(this.#limits.sessionCheckMs, () => {
      this.#cancelCheck = undefined;
      if (session().status().kind !== 'connected') return this.stop();
      if (this.#views.size > 0) this.#checkLater();
    });
  }

  /** Opens the console once, and waits until it ends. */
  async #hear(view: View): Promise<void> {
    const { log } = this.#parts;
    const { hostUid } = view.order;
    let opened: BmcConsole | FinalResult;
    try {
      opened = await this.#open(view);
    } catch (error) {
      log.error({ hostUid }, 'a console could not be opened', error);
      opened = { kind: 'transientError', cause: 'busy', message: 'see the log of the agent' };
    }
    if ('ended' in opened) {
      const { signal } = view.abort;
      signal.addEventListener('abort', opened.close, { once: true });
      if (signal.aborted) opened.close();
      else this.#say(view, { state: ConsoleState.HEARD, message: '' });
      await opened.ended;
      signal.removeEventListener('abort', opened.close);
      this.#wait(view, 'the BMC has ended its session');
    } else if (opened.kind === 'failed' && opened.type !== 'cancelled') {
      const message = boundText(opened.message, messageBytesMax);
      this.#say(view, { failure: failureTypeOf(opened.type), message });
    } else this.#wait(view, 'message' in opened ? opened.message : '');
  }

  #wait(view: View, why: string): void {
    if (view.abort.signal.aborted) return;
    const message = boundText(why, messageBytesMax);
    this.#say(view, { state: ConsoleState.WAITING, message });
    view.cancelRetry = this.#parts.clock.after(this.#limits.retryMs, () => void this.#hear(view));
  }

  async #open(view: View): Promise<BmcConsole | FinalResult> {
    const { drivers, consoles, session } = this.#parts;
    const { bmc, expectedIdentity, hostUid } = view.order;
    const reachable = resolveBmc(session(), bmc, expectedIdentity);
    if (reachable.kind !== 'ok') return reachable;
    const { signal } = view.abort;
    const preempted = new AbortController();
    const driver = drivers.driver(reachable.endpoint, { preempt: () => preempted.abort() });
    if (driver.openConsole === undefined) {
      return failure('unsupported', 'the protocol of this BMC has no serial console');
    }
    // (V2)
    const both = AbortSignal.any([signal, preempted.signal]);
    const expected = await expectBmc(driver, reachable, { signal: both });
    if (expected.kind !== 'expected') return expected;
    this.#catchUp(view);
    const opened = await consoles.hear(
      hostUid,
      (hear, others) => driver.openConsole?.(hear, AbortSignal.any([others, preempted.signal])),
      () => this.#catchUp(view),
      signal,
    );
    if (opened === undefined) return failure('unsupported', 'this BMC has no serial console');
    return opened.kind === 'ok' ? opened.value : resultOfBmc(opened);
  }

  #catchUp(view: View): void {
    const { content, end } = this.#parts.consoles.since(view.order.hostUid, view.end);
    view.end = end;
    view.pending.write(content);
    this.#sendSoon();
  }

  #say(view: View, notice: ConsoleNotice): void {
    view.notice = notice;
    this.#sendSoon();
  }

  #sendSoon(): void {
    if (this.#cancelPiece !== undefined || this.#next() === undefined) return;
    this.#cancelPiece = this.#parts.clock.after(this.#limits.pieceEveryMs, () => {
      this.#cancelPiece = undefined;
      const view = this.#next();
      if (view !== undefined) this.#send(view);
      this.#sendSoon();
    });
  }

  /** The view that may send next; undefined: nothing may be sent. */
  #next(): View | undefined {
    const hasRoom = this.#roomBytes() > 0;
    return [...this.#views.values()].find(({ pending, notice }) => {
      return pending.length > 0 ? hasRoom : notice !== undefined;
    });
  }

  #roomBytes(): number {
    return this.#limits.untakenBytesMax - (this.#sentBytes - this.#takenBytes);
  }

  #send(view: View): void {
    const { id, hostUid } = view.order;
    const bytesMax = Math.min(this.#limits.pieceBytesMax, this.#roomBytes());
    const { content, dropped } = view.pending.take(bytesMax);
    this.#sentBytes += content.length;
    const notice = view.pending.length === 0 ? view.notice : undefined;
    if (notice !== undefined) view.notice = undefined;
    const output = { id, hostUid, content, droppedBytes: BigInt(dropped), ...notice };
    this.#parts.session().reportConsole(create(agent.ConsoleOutputSchema, output));
    this.#views.delete(id);
    if (notice?.failure === undefined) this.#views.set(id, view);
    else view.abort.abort();
  }
}
