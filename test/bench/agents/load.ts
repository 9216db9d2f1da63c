/** A noisy rack, and what the control plane is compared with: an echo. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { HostUid } from '@rackwright/messages';
import { allIn, heartbeatIntervalMs } from './fleet.ts';
import { type Credentials, LeanStream } from './lean-agent.ts';

/** A rack whose agent says as much as it can: each message changes what is known of a host. */
export async function beNoisy(
  port: number,
  credentials: Credentials | undefined,
  hostUids: readonly HostUid[],
): Promise<() => Promise<number>> {
  if (credentials === undefined) throw new Error('no such rack');
  const welcome = Promise.withResolvers<void>();
  const stream = new LeanStream(
    port,
    credentials,
    ({ case: kind }) => {
      if (kind === 'welcome') welcome.resolve();
    },
    '127.0.99.1',
  );
  const journal = { id: 'noisy', generation: BigInt(Date.now()) };
  stream.send({ case: 'hello', value: { journal, operationKinds: ['verifyAccess'] } });
  await welcome.promise;
  let isOver = false;
  let sent = 0;
  const talking = talk();
  async function talk(): Promise<void> {
    while (!isOver) {
      const hostUid = hostUids[sent % hostUids.length] ?? 'nobody';
      const poweredOn = Math.floor(sent / hostUids.length) % 2 === 0;
      const value = { observations: { poweredOn } };
      sent += 1;
      const report = { hostUid, result: { case: 'hostUpdated' as const, value } };
      if (!stream.send({ case: 'report', value: report })) await stream.drained();
      else if (sent % 64 === 0) await sleep(0);
    }
  }
  return async () => {
    isOver = true;
    stream.cut();
    await talking;
    return sent;
  };
}

/** The same streams to a server that only sends back what comes, at the heartbeats' period. */
export class EchoFleet {
  readonly acknowledgedMs: number[] = [];
  readonly renewedMs: number[] = [];
  readonly retries = 0;
  readonly breaks = 0;
  readonly #port: number;
  readonly #credentials: readonly Credentials[];
  readonly #streams: LeanStream[] = [];
  readonly #timers: NodeJS.Timeout[] = [];

  constructor(port: number, credentials: readonly Credentials[]) {
    this.#port = port;
    this.#credentials = credentials;
  }

  connect(): Promise<number> {
    return allIn(this.#credentials.map((each, index) => this.#open(each, index)));
  }

  #open(credentials: Credentials, index: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    let sentMs = performance.now();
    const address = `127.0.${1 + Math.floor(index / 1_000)}.1`;
    let isFirst = true;
    // A renewal's fields are a heartbeat's: what comes back can be read as one.
    const stream = new LeanStream(
      this.#port,
      credentials,
      () => {
        if (!isFirst) this.renewedMs.push(performance.now() - sentMs);
        isFirst = false;
        resolve();
      },
      address,
    );
    const beat = () => {
      sentMs = performance.now();
      stream.send({ case: 'hello', value: { agentVersion: 'echo' } });
    };
    beat();
    this.#streams.push(stream);
    const begin = () => this.#timers.push(setInterval(beat, heartbeatIntervalMs));
    setTimeout(begin, heartbeatIntervalMs * Math.random());
    return promise;
  }

  cut(): void {
    for (const timer of this.#timers.splice(0)) clearInterval(timer);
    for (const stream of this.#streams.splice(0)) stream.cut();
  }
}
