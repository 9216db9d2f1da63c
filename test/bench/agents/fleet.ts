/**
 * Many lean agents: connects them, keeps their heartbeats, answers their verifications, and tells
 * how long things took.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { agent } from '@rackwright/messages';
import { type Credentials, LeanStream, type Message } from './lean-agent.ts';

/** Default of `SessionTiming` for agents without work: what Welcome asks for. */
export const heartbeatIntervalMs = 20_000;
/** Pauses of `SessionLimits`, before full jitter. */
const reconnectFirstMs = 1_000;
const reconnectMsMax = 30_000;
/** Agents behind one address. */
const perAddress = 1_000;
/** By then all agents are in, or what is measured is no figure. */
const connectMsMax = 300_000;

/** Rejects when not all of them are in by then; resolves with the milliseconds that it took. */
export async function allIn(connecting: readonly Promise<void>[]): Promise<number> {
  const startMs = performance.now();
  let inside = 0;
  const counted = connecting.map(async (each) => {
    await each;
    inside += 1;
  });
  const late = AbortSignal.timeout(connectMsMax);
  const over = new Promise<never>((_resolve, reject) => {
    late.addEventListener('abort', () => {
      const text = `after ${connectMsMax / 1_000} s ${inside} of ${connecting.length} are in`;
      reject(new Error(text));
    });
  });
  await Promise.race([Promise.all(counted), over]);
  return performance.now() - startMs;
}

export class Fleet {
  readonly #port: number;
  readonly #agents: BenchAgent[];
  /** Milliseconds from a final report to its answer. */
  readonly acknowledgedMs: number[] = [];
  /** Milliseconds from a heartbeat to its renewal. */
  readonly renewedMs: number[] = [];

  constructor(port: number, all: readonly Credentials[]) {
    this.#port = port;
    this.#agents = all.map((each, index) => {
      const address = `127.0.${1 + Math.floor(index / perAddress)}.1`;
      return new BenchAgent(this.#port, each, address, this);
    });
  }

  /** Connects all at once; resolves with the time until the last one is welcome. */
  connect(): Promise<number> {
    return allIn(this.#agents.map((each) => each.connect()));
  }

  /** Cuts every connection. */
  cut(): void {
    for (const each of this.#agents) each.cut();
  }

  /** How often a connection was refused or broke before it was welcome. */
  get retries(): number {
    return this.#agents.reduce((sum, { retries }) => sum + retries, 0);
  }

  /** How often a session ended that was not cut here; it is opened again. */
  get breaks(): number {
    return this.#agents.reduce((sum, { breaks }) => sum + breaks, 0);
  }
}

class BenchAgent {
  retries = 0;
  breaks = 0;
  readonly #port: number;
  readonly #credentials: Credentials;
  readonly #address: string;
  readonly #fleet: Fleet;
  #stream: LeanStream | undefined;
  #generation = 0n;
  #sequence = 0n;
  #beat = 0n;
  #beatTimer: NodeJS.Timeout | undefined;
  readonly #sentMs = new Map<string, number>();

  constructor(port: number, credentials: Credentials, address: string, fleet: Fleet) {
    this.#port = port;
    this.#credentials = credentials;
    this.#address = address;
    this.#fleet = fleet;
  }

  async connect(): Promise<void> {
    for (let attempt = 1; !(await this.#tryConnect()); attempt += 1) {
      this.retries += 1;
      const longestMs = Math.min(reconnectFirstMs * 2 ** (attempt - 1), reconnectMsMax);
      await sleep(longestMs * Math.random());
    }
    this.#beatTimer = setTimeout(() => this.#beats(), heartbeatIntervalMs * Math.random());
    const stream = this.#stream;
    void stream?.ended.then(() => {
      if (this.#stream !== stream) return;
      this.breaks += 1;
      clearTimeout(this.#beatTimer);
      void this.connect();
    });
  }

  cut(): void {
    clearTimeout(this.#beatTimer);
    this.#stream?.cut();
    this.#stream = undefined;
  }

  async #tryConnect(): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const stream = new LeanStream(
      this.#port,
      this.#credentials,
      (message) => {
        if (message.case === 'welcome') resolve(true);
        this.#hear(stream, message);
      },
      this.#address,
    );
    this.#stream = stream;
    this.#generation += 1n;
    const journal = { id: `j-${this.#credentials.rackId}`, generation: this.#generation };
    const operationKinds = ['verifyAccess', 'setPower', 'inspect', 'runStep', 'cancel'];
    stream.send({ case: 'hello', value: { journal, agentVersion: 'bench', operationKinds } });
    void stream.ended.then(() => resolve(false));
    return promise;
  }

  #beats(): void {
    this.#beat += 1n;
    this.#sentMs.set(`beat ${this.#beat}`, performance.now());
    this.#stream?.send({
      case: 'heartbeat',
      value: { sequence: this.#beat, nextInMs: heartbeatIntervalMs },
    });
    this.#beatTimer = setTimeout(() => this.#beats(), heartbeatIntervalMs);
  }

  #hear(stream: LeanStream, message: Message): void {
    switch (message.case) {
      case 'operation':
        this.#answer(stream, message.value);
        return;
      case 'reportAnswer':
        this.#took(`report ${message.value.sequence}`, this.#fleet.acknowledgedMs);
        return;
      case 'leaseRenewal':
        this.#took(`beat ${message.value.heartbeatSequence}`, this.#fleet.renewedMs);
        return;
      default:
    }
  }

  /** Every BMC is its host's. */
  #answer(stream: LeanStream, { id, hostUid }: agent.Operation): void {
    this.#sequence += 1n;
    this.#sentMs.set(`report ${this.#sequence}`, performance.now());
    const guid = Buffer.alloc(16, hostUid);
    const observations = { bmcIdentity: { guid, serial: hostUid }, poweredOn: false };
    stream.send({
      case: 'report',
      value: {
        sequence: this.#sequence,
        operationId: id,
        hostUid,
        result: { case: 'complete', value: { observations } },
      },
    });
  }

  #took(what: string, into: number[]): void {
    const sentMs = this.#sentMs.get(what);
    this.#sentMs.delete(what);
    if (sentMs !== undefined) into.push(performance.now() - sentMs);
  }
}
