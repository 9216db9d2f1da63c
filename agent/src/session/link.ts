/**
 * Keeps one stream to the control plane: dials, says Hello, waits for Welcome, beats, notices
 * silence, and dials again.
 *
 * K1 Nothing but Hello is sent before Welcome, and nothing is handed on before it.
 * K2 At most one stream is in use. What an abandoned one still brings is not heard.
 * K3 Attempts to connect are spread by full jitter over a delay that doubles and is capped.
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { agent } from '@rackwright/api';
import type { Cancel, Clock, Log, Random } from '@rackwright/platform';
import { fullJitterDelayMs } from '@rackwright/results';
import type { SessionLimits } from './limits.ts';
import type { Connection, Transport } from './transport.ts';

export type LinkStatus =
  | { readonly kind: 'stopped' }
  /** Between two attempts. */
  | { readonly kind: 'waiting'; readonly reason: string }
  | { readonly kind: 'connecting' }
  | { readonly kind: 'connected'; readonly sessionId: string };

export interface LinkDependencies {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly limits: SessionLimits;
  readonly hello: () => MessageInitShape<typeof agent.HelloSchema>;
  /** The session is open: `send` works from here on. */
  readonly onWelcome: (welcome: agent.Welcome) => void;
  readonly onMessage: (message: agent.SessionResponse['message']) => void;
  /** Called directly before a heartbeat is sent. */
  readonly onHeartbeat: (sequence: bigint) => void;
}

export class Link {
  readonly #deps: LinkDependencies;
  #status: LinkStatus = { kind: 'stopped' };
  #connection: Connection | undefined;
  /** Tells the stream in use from abandoned ones (K2). */
  #stream = 0;
  #sessions = 0;
  /** Attempts since the last Welcome. */
  #attempt = 0;
  #heardAtMs = 0;
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

  /** Ends the stream in use and dials again: what Hello says has changed. */
  redial(reason: string): void {
    if (this.#status.kind === 'connected') this.#dialLater(reason);
  }

  /** Sends into the open session; does nothing while there is none (K1). */
  send(message: agent.SessionRequest['message']): void {
    if (this.#status.kind !== 'connected') return;
    this.#connection?.send(create(agent.SessionRequestSchema, { message }));
  }

  #dial(): void {
    const { transport, clock, limits } = this.#deps;
    this.#leaveStream();
    this.#attempt += 1;
    this.#status = { kind: 'connecting' };
    this.#heardAtMs = clock.suspendAwareMs();
    const stream = this.#stream;
    this.#connection = transport.connect({
      onMessage: ({ message }) => {
        if (stream === this.#stream) this.#hear(message);
      },
      onClosed: (reason) => {
        if (stream === this.#stream) this.#dialLater(reason);
      },
    });
    const hello = create(agent.HelloSchema, this.#deps.hello());
    const message = { case: 'hello', value: hello } as const;
    this.#connection.send(create(agent.SessionRequestSchema, { message }));
    this.#cancelTimer = clock.after(limits.welcomeWaitMs, () => {
      this.#dialLater(`no Welcome within ${limits.welcomeWaitMs} ms`);
    });
  }

  #hear(message: agent.SessionResponse['message']): void {
    this.#heardAtMs = this.#deps.clock.suspendAwareMs();
    if (message.case === 'refused') {
      const { reason, message: text } = message.value;
      return this.#dialLater(`refused: ${reason}: ${text}`);
    }
    if (this.#status.kind === 'connected') {
      if (message.case !== 'welcome') return this.#deps.onMessage(message);
      return this.#dialLater('a second Welcome');
    }
    if (message.case === 'welcome') return this.#open(message.value);
    this.#dialLater(`${message.case ?? 'an unknown message'} before Welcome`);
  }

  #open(welcome: agent.Welcome): void {
    const { limits, log, onWelcome } = this.#deps;
    const { sessionId, heartbeatIntervalMs } = welcome;
    const longest = Math.max(heartbeatIntervalMs, limits.heartbeatShortestMs);
    const intervalMs = Math.min(longest, limits.heartbeatLongestMs);
    this.#cancelTimer();
    this.#attempt = 0;
    this.#sessions += 1;
    this.#status = { kind: 'connected', sessionId };
    log.info({ session: sessionId, heartbeatMs: intervalMs }, 'connected to the control plane');
    const stream = this.#stream;
    onWelcome(welcome);
    if (stream === this.#stream) this.#beat(1n, intervalMs);
  }

  #beat(sequence: bigint, intervalMs: number): void {
    const { clock, limits, onHeartbeat } = this.#deps;
    if (clock.suspendAwareMs() - this.#heardAtMs > limits.silenceMs) {
      return this.#dialLater(`silent for more than ${limits.silenceMs} ms`);
    }
    onHeartbeat(sequence);
    this.send({ case: 'heartbeat', value: create(agent.HeartbeatSchema, { sequence }) });
    this.#cancelTimer = clock.after(intervalMs, () => this.#beat(sequence + 1n, intervalMs));
  }

  #dialLater(reason: string): void {
    const { clock, random, limits, log } = this.#deps;
    this.#leaveStream();
    const delayMs = fullJitterDelayMs({
      attempt: Math.max(this.#attempt, 1),
      firstMs: limits.reconnectFirstMs,
      longestMs: limits.reconnectLongestMs,
      fraction: random.fraction(),
    });
    log.warn({ reason, delayMs, attempt: this.#attempt }, 'no session with the control plane');
    this.#status = { kind: 'waiting', reason };
    this.#cancelTimer = clock.after(delayMs, () => this.#dial());
  }

  #leaveStream(): void {
    this.#stream += 1;
    this.#cancelTimer();
    this.#connection?.close();
    this.#connection = undefined;
  }
}
