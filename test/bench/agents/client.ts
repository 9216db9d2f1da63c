/**
 * The agents' side of the benchmark, a process of its own: does what its parent asks by IPC, one
 * thing after another, and answers each with what it came to.
 */
import type { HostUid } from '@rackwright/messages';
import { connect } from '@rackwright/rpc';
import { Fleet } from './fleet.ts';
import { type FloodPorts, flood } from './flood.ts';
import { type Credentials, enrol } from './lean-agent.ts';
import { beNoisy, EchoFleet } from './load.ts';

export type Task =
  /** Those are added to what is known. */
  | {
      readonly kind: 'enrol';
      readonly target: string;
      readonly caPem: string;
      readonly tokens: readonly string[];
    }
  | { readonly kind: 'enrolled' }
  | { readonly kind: 'connect'; readonly port: number; readonly from: number; readonly to: number }
  | { readonly kind: 'cut' }
  /** Forgets what was measured before. */
  | { readonly kind: 'measure' }
  | { readonly kind: 'measured' }
  | {
      readonly kind: 'noise';
      readonly port: number;
      readonly index: number;
      readonly hostUids: readonly HostUid[];
    }
  | { readonly kind: 'flood'; readonly ports: FloodPorts }
  | { readonly kind: 'quiet' }
  | { readonly kind: 'echo'; readonly port: number; readonly count: number };

export interface Measured {
  readonly acknowledgedMs: readonly number[];
  readonly renewedMs: readonly number[];
  readonly retries: number;
  /** How often a session ended that nobody here has ended. */
  readonly breaks: number;
}

const enrolmentsAtOnce = 16;
let credentials: Credentials[] = [];
let fleet: Fleet | undefined;
let echoes: EchoFleet | undefined;
let stopLoad: (() => Promise<unknown>) | undefined;

async function enrolAll({ target, caPem, tokens }: Extract<Task, { kind: 'enrol' }>) {
  const channel = connect({ target, caPem, serverName: 'localhost' });
  const all: Credentials[] = [];
  let next = 0;
  const worker = async () => {
    for (let index = next++; index < tokens.length; index = next++) {
      all[index] = await enrol(channel, tokens[index] ?? '');
    }
  };
  try {
    await Promise.all(Array.from({ length: enrolmentsAtOnce }, worker));
  } finally {
    channel.close();
  }
  return all;
}

function measureAnew(): void {
  for (const each of [fleet, echoes]) {
    each?.acknowledgedMs.splice(0);
    each?.renewedMs.splice(0);
  }
}

function measured(): Measured {
  const { acknowledgedMs = [], renewedMs = [], retries = 0, breaks = 0 } = fleet ?? echoes ?? {};
  return { acknowledgedMs, renewedMs, retries, breaks };
}

async function perform(task: Task): Promise<unknown> {
  switch (task.kind) {
    case 'enrol':
      credentials.push(...(await enrolAll(task)));
      return undefined;
    case 'enrolled':
      return credentials;
    case 'connect':
      fleet ??= new Fleet(task.port, credentials.slice(task.from, task.to));
      return fleet.connect();
    case 'cut':
      fleet?.cut();
      echoes?.cut();
      return undefined;
    case 'measure':
      return measureAnew();
    case 'measured':
      return measured();
    case 'noise':
      stopLoad = await beNoisy(task.port, credentials[task.index], task.hostUids);
      return undefined;
    case 'flood':
      stopLoad = flood(task.ports);
      return undefined;
    case 'quiet':
      return stopLoad?.();
    case 'echo':
      echoes ??= new EchoFleet(task.port, credentials.slice(0, task.count));
      return echoes.connect();
  }
}

export type Order = Task | { readonly kind: 'know'; readonly credentials: readonly Credentials[] };

process.on('message', (order: Order) => {
  if (order.kind === 'know') {
    credentials = [...order.credentials];
    process.send?.({ result: undefined });
    return;
  }
  perform(order).then(
    (result) => process.send?.({ result }),
    (error: unknown) => process.send?.({ error: String(error) }),
  );
});
process.on('disconnect', () => process.exit(0));
