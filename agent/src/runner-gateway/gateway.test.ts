import { generateKeyPairSync, sign, verify } from 'node:crypto';
import { connect as connectPlain } from 'node:net';
import { create, fromBinary, type MessageInitShape } from '@bufbuild/protobuf';
import { agent, InventorySchema, runner } from '@rackwright/messages';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { quietLog } from '@rackwright/platform/testing';
import { type FinalResult, resultToWire } from '@rackwright/results';
import { connect, createClient, fetchPinnedCertificate } from '@rackwright/rpc';
import { afterEach, describe, expect, test } from 'vitest';
import { MemoryDisk } from '../journal/testing/disk.ts';
import type { BootGrantState, OperationContext } from '../session/index.ts';
import { loadBootCertificate } from './certificate.ts';
import { defaultDispatcherLimits, RunnerDispatcher } from './dispatcher.ts';
import { defaultGatewayLimits, RunnerGateway } from './gateway.ts';
import { noHandOffs } from './hand-offs.ts';
import { MessageQueue } from './message-queue.ts';
import { testSigner } from './testing.ts';

const clock = nodeClock();
const random = nodeRandom();
const memoryDisk = () => new MemoryDisk().open().disk;
const token = 'a'.repeat(32);
const closers: (() => Promise<void> | void)[] = [];
/** What the gateway has logged as an error. */
const errors: unknown[] = [];
const log = {
  ...quietLog,
  error: (_fields: unknown, _message: string, error?: unknown) => void errors.push(error),
};

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** A gateway on a port of its own, with one open grant. */
async function startGateway(helloTimeoutMs = defaultGatewayLimits.helloTimeoutMs) {
  const signer = testSigner();
  const grant: BootGrantState = {
    operationId: 'boot-1',
    hostUid: 'uid-1',
    hostName: 'h1',
    macs: [],
    bootToken: token,
    openedAtMs: clock.nowMs() - 60_000,
    openedSuspendAwareMs: clock.suspendAwareMs() - 60_000,
    expiresAtMs: clock.nowMs() + 60_000,
  };
  const grants = new Map([[token, grant]]);
  const facts: string[] = [];
  const found: string[] = [];
  const dispatcher = new RunnerDispatcher({
    clock,
    log: quietLog,
    signer,
    operationState: () => 'unknown',
    handOffs: noHandOffs,
    limits: defaultDispatcherLimits,
  });
  const gateway = new RunnerGateway({
    clock,
    random,
    log,
    dispatcher,
    imageEndpoint: (localAddress) => `${localAddress}:8080`,
    limits: { ...defaultGatewayLimits, helloTimeoutMs },
    strangers: {
      addLink: () => undefined,
      removeLink: () => undefined,
      isAwaited: () => found.length === 0,
      reportInventory: (id, { system }, bmc) => found.push(`${id} ${system?.serial} ${bmc}`),
      endWithoutInventory: (id, why) => found.push(`${id} ${why}`),
    },
    grants: {
      byToken: (asked) => grants.get(asked),
      bind: async (_operationId, publicKey) => {
        grants.set(token, { ...grant, publicKey });
        return 'bound';
      },
      close: async () => void grants.delete(token),
    },
    facts: {
      runnerReady: (hostUid, { bootId }) => facts.push(`ready ${hostUid} ${bootId}`),
      runnerGone: (hostUid) => facts.push(`gone ${hostUid}`),
      runnerRefused: (...refusal) => facts.push(`refused ${refusal.join(' ')}`),
    },
  });
  const certificate = await loadBootCertificate(memoryDisk(), random, '/gateway.json');
  const server = await gateway.listen('0.0.0.0', 0, certificate);
  closers.push(() => server.close());
  return { certificate, dispatcher, facts, found, grants, port: server.port, signer };
}

type Rig = Awaited<ReturnType<typeof startGateway>>;
type FromRunner = MessageInitShape<typeof runner.SessionRequestSchema>;

/** A runner as it comes from the ramdisk: knows address, fingerprint and token. */
async function dial({ port, certificate }: Rig, host = '127.0.0.1') {
  const target = { host, port };
  const sha256 = certificate.fingerprint;
  const caPem = await fetchPinnedCertificate({ ...target, sha256, timeoutMs: 5_000, clock });
  const channel = connect({ target: `${host}:${port}`, caPem, serverName: 'rackwright-agent' });
  const outgoing = new MessageQueue<FromRunner>(16);
  const responses = createClient(runner.RunnerService, channel).session(outgoing);
  const incoming = responses[Symbol.asyncIterator]();
  closers.push(() => channel.close());
  const next = async (): Promise<runner.SessionResponse['message']> => {
    const { value, done } = await incoming.next();
    return done === true ? { case: undefined } : value.message;
  };
  const send = (message: NonNullable<FromRunner['message']>) => outgoing.push({ message });
  return { next, send, hangUp: () => outgoing.end() };
}

type Runner = Awaited<ReturnType<typeof dial>>;

function runnerKey() {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' });
}

/** The signature that proves the key to the party that gave the nonce. */
function helloOf(keys: ReturnType<typeof runnerKey>, nonce: Uint8Array, bootToken = token) {
  const label = Buffer.from('rackwright-runner-hello\0');
  const signed = Buffer.concat([label, nonce, Buffer.from(bootToken)]);
  return create(runner.HelloSchema, {
    bootToken,
    publicKey: keys.publicKey.export({ type: 'spki', format: 'der' }),
    signature: sign('sha256', signed, keys.privateKey),
    bootId: 'kernel-1',
    uptimeMs: 10_000n,
    steps: [create(agent.StepDescriptionSchema, { name: 'deploy.erase_devices' })],
  });
}

/** Answers the challenge; `changes` spoil the Hello after it was signed. */
async function sayHello(
  link: Runner,
  keys: ReturnType<typeof runnerKey>,
  changes: Partial<Omit<runner.Hello, '$typeName' | '$unknown'>> = {},
  bootToken = token,
) {
  const challenge = await link.next();
  if (challenge.case !== 'challenge')
    throw new Error(`expected a challenge, got ${challenge.case}`);
  const value = helloOf(keys, challenge.value.nonce, bootToken);
  link.send({ case: 'hello', value: create(runner.HelloSchema, { ...value, ...changes }) });
  return link.next();
}

const context: OperationContext = {
  signal: new AbortController().signal,
  begin: async () => {},
  reportProgress: () => {},
  credential: () => Promise.reject(new Error('no credential is needed')),
  isLeaseValid: () => true,
  leaseLeftMs: () => 9_000,
  brake: () => undefined,
  remainingMs: () => Number.POSITIVE_INFINITY,
  openGrant: () => Promise.reject(new Error('no grant is opened')),
  closeGrants: async () => {},
};

function runErase(dispatcher: RunnerDispatcher, id: string, waitMs?: number): Promise<FinalResult> {
  const value = create(agent.RunStepSchema, {
    step: 'deploy.erase_devices',
    destructive: true,
    bootOperationId: 'boot-1',
  });
  const kind = { case: 'runStep', value } as const;
  const operation = create(agent.OperationSchema, { id, hostUid: 'uid-1', kind });
  const within = waitMs === undefined ? context : { ...context, remainingMs: () => waitMs };
  return dispatcher.run({ operation, bootOperationId: 'boot-1', order: kind }, within);
}

describe('the gateway for runners', () => {
  test('accepts the key that presents the token first, and the same key again', async () => {
    const rig = await startGateway();
    const keys = runnerKey();
    const first = await dial(rig);
    const accepted = await sayHello(first, keys);
    expect(accepted).toMatchObject({
      case: 'accepted',
      value: { imageEndpoint: '127.0.0.1:8080' },
    });
    expect(rig.facts).toEqual(['ready uid-1 kernel-1']);
    const again = await dial(rig);
    expect(await sayHello(again, keys)).toEqual(accepted);
    expect((await first.next()).case).toBeUndefined();
    expect(rig.facts).toEqual(['ready uid-1 kernel-1', 'ready uid-1 kernel-1']);
    again.hangUp();
    expect((await again.next()).case).toBeUndefined();
    await expect.poll(() => rig.facts.at(-1)).toBe('gone uid-1');
  });

  test('logs why a report cannot be processed, and ends the stream', async () => {
    const rig = await startGateway();
    const link = await dial(rig);
    await sayHello(link, runnerKey());
    const planted = new Error('planted');
    rig.dispatcher.report = () => {
      throw planted;
    };
    link.send({ case: 'report', value: create(agent.ReportSchema, { operationId: 'op-1' }) });
    expect((await link.next()).case).toBeUndefined();
    expect(errors.splice(0)).toEqual([planted]);
  });

  test('sends a runner for its images to the address that it has dialled', async () => {
    const rig = await startGateway();
    const link = await dial(rig, '127.0.0.2');
    const value = { imageEndpoint: '127.0.0.2:8080' };
    expect(await sayHello(link, runnerKey())).toMatchObject({ case: 'accepted', value });
  });

  test('lets a runner in rescue take no step, whatever it offers', async () => {
    const rig = await startGateway();
    const grant = rig.grants.get(token);
    if (grant === undefined) throw new Error('no grant');
    rig.grants.set(token, { ...grant, rescue: true });
    const link = await dial(rig);
    expect((await sayHello(link, runnerKey())).case).toBe('accepted');
    await expect.poll(() => rig.facts).toEqual(['ready uid-1 kernel-1']);
    expect(rig.dispatcher.stepsOf('boot-1')).toEqual([]);
    expect(await runErase(rig.dispatcher, 'op-1')).toMatchObject({
      kind: 'failed',
      type: 'unsupported',
      message: expect.stringContaining('rescue'),
    });
  });

  test('asks a runner without a host for its inventory, and for nothing else', async () => {
    const rig = await startGateway();
    const grant = rig.grants.get(token);
    if (grant === undefined) throw new Error('no grant');
    rig.grants.set(token, { ...grant, hostUid: '', discovery: true });
    const link = await dial(rig);
    const accepted = await sayHello(link, runnerKey(), { bmcAddress: '192.0.2.1' });
    expect(accepted.case).toBe('accepted');
    const order = await link.next();
    if (order.case !== 'order') throw new Error(`expected an order, got ${order.case}`);
    const { operationId, kind } = order.value;
    expect([operationId, kind.case]).toEqual(['boot-1', 'inspect']);
    const inventory = create(InventorySchema, { system: { serial: 'S1' } });
    const observations = create(agent.ObservationsSchema, { inventory });
    const result = resultToWire({ kind: 'complete', observations });
    const value = create(agent.ReportSchema, { operationId, result });
    link.send({ case: 'report', value });
    expect((await link.next()).case).toBe('reportReceived');
    expect(rig.found).toEqual(['boot-1 S1 192.0.2.1']);
    expect(rig.facts, 'no fact is told of it').toEqual([]);
    expect(rig.dispatcher.stepsOf('boot-1'), 'no order can reach it').toBeUndefined();
    expect(await runErase(rig.dispatcher, 'op-1', 0)).toMatchObject({ cause: 'runnerAway' });
  });

  test('refuses every other key, unknown tokens, bad proofs and too old kernels', async () => {
    const rig = await startGateway();
    const answers: string[] = [];
    const attempts: Parameters<typeof sayHello>[2][] = [
      { bootToken: 'b'.repeat(32) },
      { signature: new Uint8Array(70) },
      { publicKey: new Uint8Array(91) },
      { uptimeMs: 3_600_000n },
      { bootId: 'x'.repeat(300) },
      undefined,
      {},
    ];
    for (const changes of attempts) {
      const link = await dial(rig);
      const answer = await sayHello(link, runnerKey(), changes);
      answers.push(answer.case === 'refused' ? answer.value.message : String(answer.case));
    }
    expect(answers).toEqual([
      'the signature does not prove the key',
      'the signature does not prove the key',
      'the signature does not prove the key',
      expect.stringContaining('before the host was powered on'),
      'a text is too long or there are too many steps',
      'accepted',
      'another runner has used this boot token: boot the host again',
    ]);
    const told = 'the kernel started 51000 ms before the host was powered on';
    expect(rig.facts[0]?.replace(/\d+ ms/, '51000 ms'), 'only what a proved key said').toBe(
      `refused uid-1 boot-1 ${told}`,
    );
  });

  test('trusts neither of two runners that claim one boot, and reports it', async () => {
    const rig = await startGateway();
    const first = runnerKey();
    const link = await dial(rig);
    expect((await sayHello(link, first)).case).toBe('accepted');
    const order = runErase(rig.dispatcher, 'op-1');
    expect((await link.next()).case).toBe('order');
    expect((await sayHello(await dial(rig), runnerKey())).case).toBe('refused');
    const text = expect.stringContaining('two machines have presented the token of this boot');
    expect(await order).toMatchObject({ kind: 'failed', type: 'interrupted', message: text });
    expect((await link.next()).case, 'who had the boot is let go').toBeUndefined();
    const again = await sayHello(await dial(rig), first);
    const gone = { message: 'the boot token is not known: boot the host again' };
    expect(again, 'nor in a later life').toMatchObject({ case: 'refused', value: gone });
    expect(rig.facts[1]).toContain('refused uid-1 boot-1 two machines');
    expect(await runErase(rig.dispatcher, 'op-2')).toMatchObject({
      kind: 'retryAfter',
      message: text,
    });
  });

  test('refuses a token of nobody even when it is signed', async () => {
    const rig = await startGateway();
    rig.grants.clear();
    const answer = await sayHello(await dial(rig), runnerKey());
    expect(answer).toMatchObject({
      case: 'refused',
      value: { message: expect.stringContaining('not known') },
    });
  });

  test('a Hello that was recorded proves nothing on another stream', async () => {
    const rig = await startGateway();
    const { publicKey, privateKey } = runnerKey();
    const recorded = await dial(rig);
    const challenge = await recorded.next();
    if (challenge.case !== 'challenge') throw new Error(`got ${challenge.case}`);
    const value = helloOf({ publicKey, privateKey }, challenge.value.nonce);
    recorded.send({ case: 'hello', value });
    expect((await recorded.next()).case).toBe('accepted');
    // An attacker that has read it repeats it, beside its runner and after it.
    for (const beside of [true, false]) {
      if (!beside) recorded.hangUp();
      const replaying = await dial(rig);
      await replaying.next();
      replaying.send({ case: 'hello', value });
      expect(await replaying.next()).toMatchObject({
        case: 'refused',
        value: { message: 'the signature does not prove the key' },
      });
    }
    expect(rig.facts.filter((fact) => fact.startsWith('ready'))).toHaveLength(1);
  });

  test('the key of one boot is no key of another', async () => {
    const rig = await startGateway();
    const [first, second] = [runnerKey(), runnerKey()];
    expect((await sayHello(await dial(rig), first)).case).toBe('accepted');
    const grant = rig.grants.get(token);
    if (grant === undefined) throw new Error('no grant');
    // The host boots again: the old boot's token is gone, the new one has its own runner.
    const next = 'c'.repeat(32);
    const { publicKey: _of, ...open } = grant;
    rig.grants.clear();
    const der = second.publicKey.export({ type: 'spki', format: 'der' });
    rig.grants.set(next, { ...open, operationId: 'boot-2', bootToken: next, publicKey: der });
    const answers = [];
    for (const bootToken of [token, next]) {
      answers.push(await sayHello(await dial(rig), first, {}, bootToken));
    }
    expect(answers).toMatchObject([
      { case: 'refused', value: { message: expect.stringContaining('not known') } },
      { case: 'refused', value: { message: expect.stringContaining('another runner has used') } },
    ]);
    expect((await sayHello(await dial(rig), second, {}, next)).case).toBe('accepted');
  });

  test('cuts off who does not say Hello in time, or says something else', async () => {
    const rig = await startGateway(50);
    const silent = await dial(rig);
    expect((await silent.next()).case).toBe('challenge');
    expect((await silent.next()).case).toBe('refused');
    const other = await dial(rig);
    await other.next();
    other.send({ case: 'report', value: { operationId: 'x' } });
    expect((await other.next()).case).toBe('refused');
    expect(rig.facts).toEqual([]);
  });

  test('gives an order, signs the evidence, and says received once it is durable', async () => {
    const rig = await startGateway();
    const link = await dial(rig);
    const accepted = await sayHello(link, runnerKey());
    const ended = runErase(rig.dispatcher, 'op-1');
    const order = await link.next();
    expect(order).toMatchObject({
      case: 'order',
      value: { operationId: 'op-1', kind: { case: 'runStep' } },
    });
    const question = { operationId: 'op-1', sequence: 7n };
    link.send({ case: 'askToBegin', value: question });
    expect(await link.next()).toMatchObject({
      case: 'beginAnswer',
      value: { ...question, answer: { case: 'granted', value: true } },
    });
    link.send({
      case: 'evidence',
      value: { operationId: 'op-1', runnerVersion: '1', hostUid: 'x' },
    });
    const complete = { case: 'complete', value: {} } as const;
    link.send({ case: 'report', value: { operationId: 'op-1', result: complete } });
    const result = await ended;
    if (result.kind !== 'complete' || result.evidence === undefined) throw new Error(result.kind);
    const { payload, signature } = result.evidence;
    expect(fromBinary(agent.StepEvidenceSchema, payload)).toMatchObject({
      operationId: 'op-1',
      hostUid: 'uid-1',
      runnerSession: accepted.case === 'accepted' ? accepted.value.runnerSession : '',
    });
    const { publicKeyDer } = rig.signer;
    const key = { key: Buffer.from(publicKeyDer), format: 'der', type: 'spki' } as const;
    expect(verify('sha256', payload, key, signature)).toBe(true);
    rig.dispatcher.noteReportDurable('op-1');
    expect(await link.next()).toMatchObject({
      case: 'reportReceived',
      value: { operationId: 'op-1' },
    });
  });

  test('refuses plain text', async () => {
    const rig = await startGateway();
    const socket = connectPlain(rig.port, '127.0.0.1');
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    const received = await new Promise<number>((resolve) => {
      let bytes = 0;
      socket.on('data', (chunk) => {
        // A TLS alert may come, 7 bytes; an HTTP/2 answer must not.
        bytes += chunk.length;
      });
      socket.on('error', () => resolve(bytes));
      socket.on('close', () => resolve(bytes));
    });
    expect(received).toBeLessThanOrEqual(7);
  });
});

describe('the boot certificate', () => {
  test('is made once and stays the same', async () => {
    const disk = memoryDisk();
    const made = await loadBootCertificate(disk, random, '/gateway.json');
    expect(await loadBootCertificate(disk, random, '/gateway.json')).toEqual(made);
    expect(made.fingerprint).toMatch(/^[0-9a-f]{64}$/);
    expect((await disk.stat('/gateway.json'))?.mode).toBe(0o600);
  });

  test('a certificate that is damaged is an error that says what to do', async () => {
    const disk = memoryDisk();
    await disk.writeAtomic('/gateway.json', new TextEncoder().encode('{}'), 0o600);
    await expect(loadBootCertificate(disk, random, '/gateway.json')).rejects.toThrow('remove it');
  });
});
