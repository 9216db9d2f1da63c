/**
 * How long an agent waits for the answer to a report, alone and while one operator lists, watches
 * and counts in a loop. The agent is a lean one of a rack of its own; it reports of an operation
 * that nobody ordered, so that a frozen fleet answers, too.
 */
import { fork } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, type OperatorClients } from '@rackwright/rpc';
import { enrol, LeanStream } from '../agents/lean-agent.ts';

/** Where a control plane is. */
export interface Reached {
  readonly clients: OperatorClients;
  readonly ports: { readonly operators: number; readonly agents: number };
  readonly caPem: string;
  readonly caFile: string;
  readonly tokenFile: string;
}

export interface Answered {
  /** Milliseconds from each report to its answer. */
  readonly aloneMs: readonly number[];
  readonly besideMs: readonly number[];
  /** How many answers the operator had meanwhile. */
  readonly operatorAnswers: number;
}

const rackId = 'bench-probe';
/** Between two reports: what is measured is no load. */
const pauseMs = 20;
const measuredMs = 10_000;
const warmMs = 1_000;
const answerMsMax = 60_000;

export async function measureAnswers(reached: Reached): Promise<Answered> {
  const probe = await startProbe(reached);
  try {
    await probe(warmMs);
    const aloneMs = await probe(measuredMs);
    const { ports, caFile, tokenFile } = reached;
    const args = [`127.0.0.1:${ports.operators}`, caFile, tokenFile];
    const operator = fork(join(import.meta.dirname, './operator-loop.ts'), args);
    try {
      await sleep(warmMs);
      const besideMs = await probe(measuredMs);
      const told = new Promise<{ answers: number }>((resolve) => {
        operator.once('message', (message) => resolve(message as { answers: number }));
      });
      operator.send({});
      const { answers: operatorAnswers } = await told;
      return { aloneMs, besideMs, operatorAnswers };
    } finally {
      operator.disconnect();
    }
  } finally {
    probe.stop();
  }
}

/** Reports one after the other for so long, and tells how long each waited. */
type Probe = ((forMs: number) => Promise<number[]>) & { readonly stop: () => void };

async function startProbe({ clients, ports, caPem }: Reached): Promise<Probe> {
  await clients.racks.createRack({ rackId });
  const { token } = await clients.racks.createJoinToken({ rack: `racks/${rackId}` });
  const channel = connect({
    target: `127.0.0.1:${ports.operators}`,
    caPem,
    serverName: 'localhost',
  });
  const credentials = await enrol(channel, token);
  channel.close();
  const welcome = Promise.withResolvers<void>();
  let heard = (_sequence: bigint): void => undefined;
  const stream = new LeanStream(ports.agents, credentials, (message) => {
    if (message.case === 'welcome') welcome.resolve();
    if (message.case === 'reportAnswer') heard(message.value.sequence);
  });
  void stream.ended.then(({ message }) => welcome.reject(new Error(`no session: ${message}`)));
  const journal = { id: 'bench', generation: 1n };
  stream.send({ case: 'hello', value: { journal, operationKinds: ['verifyAccess'] } });
  await welcome.promise;
  let sequence = 0n;
  const report = async (): Promise<number> => {
    sequence += 1n;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    heard = (answered) => (answered === sequence ? resolve() : undefined);
    const late = setTimeout(() => reject(new Error('a report had no answer')), answerMsMax);
    const startMs = performance.now();
    const ofNobody = { operationId: `nobody/1/0/${sequence}`, hostUid: 'nobody' };
    const result = { case: 'complete' as const, value: {} };
    stream.send({ case: 'report', value: { sequence, ...ofNobody, result } });
    await promise;
    clearTimeout(late);
    return performance.now() - startMs;
  };
  const probe = async (forMs: number): Promise<number[]> => {
    const all: number[] = [];
    for (const endMs = performance.now() + forMs; performance.now() < endMs; ) {
      all.push(await report());
      await sleep(pauseMs);
    }
    return all;
  };
  return Object.assign(probe, { stop: () => stream.cut() });
}
