/**
 * Keeps one stream to the control plane: dials, says Hello, waits for Welcome, beats, notices
 * silence, and dials again.
 *
 * K1 Nothing but Hello is sent before Welcome, and nothing is handed on before it.
 * K2 At most one stream is in use. Messages of an abandoned stream are ignored. When the link moves
 *    to another session, the next stream is opened first. From the Hello of the next stream on,
 *    only leases of the old stream count, because that Hello covers nothing that arrives later.
 *    Other messages are deferred. They are dropped when the next stream is welcomed, because its
 *    control plane sends them again. They are processed late when it is not.
 * K3 Attempts to connect are spread by full jitter over a delay that doubles and is capped.
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { type AgentSessionId, agent } from '@rackwright/messages';
import type { Cancel, Clock, Log, Random } from '@rackwright/platform';
import { fullJitterDelayMs } from '@rackwright/results';
import type { SessionLimits } from './limits.ts';
import type { SessionTransport, StreamConnection } from './transport.ts';

export type LinkStatus =
  | { readonly kind: 'stopped' }
  /** Between two attempts. */
  | { readonly kind: 'waiting'; readonly reason: string }
  | { readonly kind: 'connecting' }
  | { readonly kind: 'connected'; readonly sessionId: AgentSessionId };

export interface LinkDependencies {
  readonly transport: SessionTransport;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly limits: SessionLimits;
  readonly hello: () => MessageInitShape<typeof agent.HelloSchema>;
  /** A stream ended before its Welcome. */
  readonly onFailure?: () => void;
  /** The session is open: `send` works from here on. */
  readonly onWelcome: (welcome: agent.Welcome) => void;
  readonly onMessage: (message: agent.SessionResponse['message']) => void;
  /** Whether there is work, for which the lease must not run out. */
  readonly hasWork: () => boolean;
  /** Called directly before a heartbeat is sent. */
  readonly onHeartbeat: (sequence: bigint) => void;
}

/** The interval of the open session's beats. */
interface Pace {
  readonly workingMs: number;
  readonly idleMs: number;
}

/** A session that is about to take over. */
interface Move {
  readonly stream: number;
  readonly connection: StreamConnection;
  readonly cancel: Cancel;
  /** Messages of the stream in use meanwhile (K2). */
  readonly deferred: agent.SessionResponse['message'][];
}

/** Messages that may be deferred while moving; beyond, the agent stays where it is. */
const deferredMax = 10_000;

export class AgentLink {
  readonly #deps: LinkDependencies;
  #status: LinkStatus = { kind: 'stopped' };
  #connection: StreamConnection | undefined;
  /** Tells the stream in use from abandoned ones (K2). */
  #stream = 0;
  #streams = 0;
  #move: Move | undefined;
  #sessions = 0;
  /** Attempts since the last Welcome. */
  #attempt = 0;
  #heardAtMs = 0;
  /** When the next heartbeat is due if work arrives; undefined: it is due by then already. */
  #beatAtMs: number | undefined;
  #beat: () => void = () => undefined;
  #cancelTimer: Cancel = () => undefined;

  constructor(deps: LinkDependencies) {
    this.#deps = deps;
  }

  get status(): LinkStatus {
    return this.#status;
  }

  /** Counts the sessions that were welcomed; 0 while none is open. */
  get session(): number {
    return this.#status.kind === 'connected' ? this.#sessions : 0;
  }

  /** Dials, and dials again, until `stop`. */
  start(): void {
    if (this.#status.kind === 'stopped') this.#dial();
  }

  stop(): void {
    this.#leaveStream();
    this.#status = { kind: 'stopped' };
  }

  /** Ends the stream in use and dials again, because the Hello has changed. */
  redial(reason: string): void {
    if (this.#status.kind === 'connected') this.#dialLater(reason);
  }

  /** Opens the next session and leaves this one once it is welcomed (K2). */
  move(reason: string): void {
    if (this.#status.kind !== 'connected' || this.#move !== undefined) return;
    const { clock, limits, log } = this.#deps;
    log.info({ reason }, 'opens the next session before it leaves this one');
    const replacesSessionId = this.#status.sessionId;
    const stream = this.#nextStream();
    const connection = this.#connect(stream);
    const cancel = clock.after(limits.welcomeWaitMs, () => {
      this.#stay(`no Welcome within ${limits.welcomeWaitMs} ms`);
    });
    this.#move = { stream, connection, cancel, deferred: [] };
    this.#sayHello(connection, {
      ...this.#deps.hello(),
      replacesSessionId,
    });
  }

  /** Sends into the open session; does nothing while there is none (K1). */
  send(message: agent.SessionRequest['message']): void {
    if (this.#status.kind !== 'connected') return;
    this.#connection?.send(create(agent.SessionRequestSchema, { message }));
  }

  /** Work has arrived: from now on heartbeats are as frequent as it needs. */
  workCame(): void {
    const { clock } = this.#deps;
    const atMs = this.#beatAtMs;
    if (this.#status.kind !== 'connected' || atMs === undefined) return;
    const waitMs = Math.max(atMs - clock.suspendAwareMs(), 0);
    this.#cancelTimer();
    this.#beatAtMs = undefined;
    this.#cancelTimer = clock.after(waitMs, this.#beat);
  }

  #dial(): void {
    const { clock, limits } = this.#deps;
    this.#leaveStream();
    this.#attempt += 1;
    this.#status = { kind: 'connecting' };
    this.#heardAtMs = clock.suspendAwareMs();
    this.#stream = this.#nextStream();
    this.#connection = this.#connect(this.#stream);
    this.#sayHello(this.#connection, this.#deps.hello());
    this.#cancelTimer = clock.after(limits.welcomeWaitMs, () => {
      this.#dialLater(`no Welcome within ${limits.welcomeWaitMs} ms`);
    });
  }

  #nextStream(): number {
    this.#streams += 1;
    return this.#streams;
  }

  #connect(stream: number): StreamConnection {
    return this.#deps.transport.connect({
      onMessage: ({ message }) => {
        if (stream === this.#move?.stream) this.#receiveFromNext(this.#move, message);
        else if (stream === this.#stream) this.#receive(message);
      },
      onClosed: (reason) => {
        if (stream === this.#move?.stream) this.#stay(reason);
        else if (stream === this.#stream) this.#lost(reason);
      },
    });
  }

  #sayHello(connection: StreamConnection, hello: MessageInitShape<typeof agent.HelloSchema>): void {
    const message = { case: 'hello', value: create(agent.HelloSchema, hello) } as const;
    connection.send(create(agent.SessionRequestSchema, { message }));
  }

  #lost(reason: string): void {
    if (this.#move === undefined) return this.#dialLater(reason);
    // The other end leaves it for the next one, whose Welcome is on its way.
    this.#move.deferred.length = 0;
    this.#connection = undefined;
  }

  #receiveFromNext(move: Move, message: agent.SessionResponse['message']): void {
    if (message.case !== 'welcome') {
      const why = message.case === 'refused' ? `refused: ${message.value.message}` : 'no Welcome';
      return this.#stay(why);
    }
    move.cancel();
    this.#move = undefined;
    this.#leaveStream();
    this.#stream = move.stream;
    this.#connection = move.connection;
    this.#heardAtMs = this.#deps.clock.suspendAwareMs();
    this.#open(message.value);
  }

  /** The next session failed: this one goes on. */
  #stay(reason: string): void {
    const move = this.#move;
    if (move === undefined) return;
    this.#move = undefined;
    move.cancel();
    move.connection.close();
    this.#deps.log.warn({ reason }, 'the next session did not open; this one goes on');
    if (this.#connection === undefined) return this.#dialLater(reason);
    for (const message of move.deferred) this.#deps.onMessage(message);
  }

  #receive(message: agent.SessionResponse['message']): void {
    this.#heardAtMs = this.#deps.clock.suspendAwareMs();
    if (message.case === 'refused') {
      const { reason, message: text } = message.value;
      return this.#dialLater(`refused: ${reason}: ${text}`);
    }
    if (this.#status.kind === 'connected') {
      if (message.case !== 'welcome') return this.#handOn(message);
      return this.#dialLater('a second Welcome');
    }
    if (message.case === 'welcome') return this.#open(message.value);
    this.#dialLater(`${message.case ?? 'an unknown message'} before Welcome`);
  }

  #handOn(message: agent.SessionResponse['message']): void {
    if (this.#move === undefined || message.case === 'leaseRenewal') {
      return this.#deps.onMessage(message);
    }
    this.#move.deferred.push(message);
    if (this.#move.deferred.length > deferredMax) this.#stay('too much came meanwhile');
  }

  #open(welcome: agent.Welcome): void {
    const { limits, log, onWelcome } = this.#deps;
    const { sessionId, heartbeatIntervalMs, idleHeartbeatIntervalMs } = welcome;
    const longest = Math.max(heartbeatIntervalMs, limits.heartbeatShortestMs);
    const workingMs = Math.min(longest, limits.heartbeatLongestMs);
    const idleLongest = Math.max(idleHeartbeatIntervalMs, workingMs);
    const idleMs = Math.min(idleLongest, limits.heartbeatLongestMs);
    this.#cancelTimer();
    this.#attempt = 0;
    this.#sessions += 1;
    this.#status = { kind: 'connected', sessionId };
    log.info({ session: sessionId, heartbeatMs: workingMs }, 'connected to the control plane');
    const stream = this.#stream;
    onWelcome(welcome);
    if (stream === this.#stream) this.#beats(1n, { workingMs, idleMs });
  }

  #beats(sequence: bigint, pace: Pace): void {
    const { clock, limits, onHeartbeat, hasWork } = this.#deps;
    const nowMs = clock.suspendAwareMs();
    if (nowMs - this.#heardAtMs > limits.silenceMs) {
      return this.#dialLater(`silent for more than ${limits.silenceMs} ms`);
    }
    const isIdle = pace.idleMs > pace.workingMs && !hasWork();
    const nextMs = isIdle ? pace.idleMs : pace.workingMs;
    this.#beatAtMs = isIdle ? nowMs + pace.workingMs : undefined;
    this.#beat = () => this.#beats(sequence + 1n, pace);
    onHeartbeat(sequence);
    const nextInMs = isIdle ? nextMs : 0;
    this.send({ case: 'heartbeat', value: create(agent.HeartbeatSchema, { sequence, nextInMs }) });
    this.#cancelTimer = clock.after(nextMs, this.#beat);
  }

  #dialLater(reason: string): void {
    const { clock, random, limits, log } = this.#deps;
    this.#leaveStream();
    const delayMs = fullJitterDelayMs({
      attempt: Math.max(this.#attempt, 1),
      firstMs: limits.reconnectFirstMs,
      delayMsMax: limits.reconnectLongestMs,
      fraction: random.fraction(),
    });
    log.warn({ reason, delayMs, attempt: this.#attempt }, 'no session with the control plane');
    const failed = this.#status.kind === 'connecting';
    this.#status = { kind: 'waiting', reason };
    this.#cancelTimer = clock.after(delayMs, () => this.#dial());
    if (failed) this.#deps.onFailure?.();
  }

  #leaveStream(): void {
    this.#beatAtMs = undefined;
    this.#stream = this.#nextStream();
    this.#move?.cancel();
    this.#move?.connection.close();
    this.#move = undefined;
    this.#cancelTimer();
    this.#connection?.close();
    this.#connection = undefined;
  }
}
