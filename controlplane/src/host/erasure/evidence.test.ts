/**
 * Evidence of an erasure: it matches the order, its id follows from it, it is written once (H6).
 */
import { createHash } from 'node:crypto';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { TimestampSchema } from '@bufbuild/protobuf/wkt';
import { joinEvidence } from '@rackwright/erasure';
import {
  agent,
  FailureType,
  HostState,
  RunKind,
  RunOutcome,
  TransientCause,
  store as wire,
} from '@rackwright/messages';
import type { MemoryCall, MemoryFault } from '@rackwright/store';
import { describe, expect, test } from 'vitest';
import { erased, failed, inspected, nvmeDisk, virtioDisk } from '../testing/bench.ts';
import {
  afterErase,
  complete,
  connectAgent,
  type PlainAgent,
  toAvailable,
  toErase,
} from '../testing/plain-agent.ts';
import { type Rig, rigWith } from '../testing/rig.ts';

type Outcome = MessageInitShape<typeof agent.DeviceOutcomeSchema>;
const { NVME_FORMAT, DISCARD, OVERWRITE } = agent.ErasureMethod;
const { RUN, CHECK } = agent.StepMode;

async function atErase(devices = [virtioDisk], faults?: (call: MemoryCall) => MemoryFault) {
  const rig = rigWith({});
  const replica = await rig.replica(faults === undefined ? {} : { faults });
  const plain = await connectAgent(rig, replica);
  await toErase(rig, plain, devices);
  return { rig, replica, plain };
}

function brings(plain: PlainAgent, evidence: agent.Evidence) {
  return plain.report({ case: 'complete', value: create(agent.CompleteSchema, { evidence }) });
}

function order(plain: PlainAgent): agent.RunStep {
  const { kind } = plain.last();
  if (kind.case !== 'runStep') throw new Error(`a step was to be ordered, not ${kind.case}`);
  return kind.value;
}

const certificates = (rig: Rig) =>
  rig.disk.lastChanges('erasureCertificates').map(({ key }) => key);
const errorType = (rig: Rig) => rig.status().lastError?.failure?.type;

describe('a check after an interrupted format', () => {
  async function atCheck() {
    const around = await atErase([nvmeDisk]);
    expect(order(around.plain).mode).toBe(RUN);
    await around.plain.report(failed('interrupted'));
    expect(order(around.plain).mode).toBe(CHECK);
    return around;
  }

  test('counts when the challenge was there before', async () => {
    const { rig, plain } = await atCheck();
    await brings(plain, plain.evidence([erased(nvmeDisk, NVME_FORMAT)]));
    expect(certificates(rig)).toHaveLength(1);
    expect(plain.last().kind.case).toBe('inspect');
  });

  test('a check that found zeros, but no challenge, fails, and the format runs', async () => {
    const { rig, plain } = await atCheck();
    const zeros: Outcome = { ...erased(nvmeDisk, NVME_FORMAT), challengeBlocksWritten: 0n };
    await brings(plain, plain.evidence([zeros]));
    expect(certificates(rig)).toEqual([]);
    expect(rig.status().run).toMatchObject({ kind: RunKind.CLEAN, outcome: 0 });
    expect(order(plain).mode).toBe(RUN);
    expect(plain.last().id).toBe('u1/3/4/3');
  });

  test('a check that cannot be made stays a check', async () => {
    const { rig, plain } = await atCheck();
    const away = create(agent.TransientErrorSchema, {
      cause: TransientCause.RUNNER_AWAY,
      message: 'no runner',
    });
    await plain.report({ case: 'transientError', value: away });
    await rig.advance(60_000);
    expect(plain.last().id).toBe('u1/3/4/3');
    expect(order(plain).mode).toBe(CHECK);
  });
});

describe('evidence', () => {
  test.each<[string, (method: agent.ErasureMethod) => Outcome]>([
    [
      'by another method than ordered',
      (method) => erased(virtioDisk, method === DISCARD ? OVERWRITE : DISCARD),
    ],
    [
      'with places of another seed than ordered',
      (method) => ({ ...erased(virtioDisk, method), challengeSeed: new Uint8Array(32).fill(9) }),
    ],
    ['of another disk than ordered', (method) => erased(nvmeDisk, method)],
  ])('%s is no valid result', async (_text, outcomeFor) => {
    const { rig, plain } = await atErase();
    await brings(plain, plain.evidence([outcomeFor(plannedMethod(plain))]));
    expect(errorType(rig)).toBe(FailureType.INVALID_RESULT);
    expect(certificates(rig)).toEqual([]);
    expect(rig.status()).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
  });

  test.each([
    ['of another operation', { operationId: 'u1/3/4/9' }],
    ['of another host', { hostUid: 'u2' }],
  ])('%s is no valid result', async (_text, changes) => {
    const { rig, plain } = await atErase();
    await brings(plain, plain.evidence([planned(plain)], changes));
    expect(errorType(rig)).toBe(FailureType.INVALID_RESULT);
    expect(certificates(rig)).toEqual([]);
  });

  test.each([
    ['reads fewer places than size and order imply', { placesRead: 16_383n }],
    ['ends before it starts', { endTime: create(TimestampSchema, { seconds: 1n }) }],
  ])('evidence that %s cannot be true and certifies nothing', async (_text, change) => {
    const { rig, plain } = await atErase();
    await brings(plain, plain.evidence([{ ...planned(plain), ...change }]));
    expect(errorType(rig)).toBe(FailureType.INVALID_RESULT);
    expect(certificates(rig)).toEqual([]);
  });

  test('names its certificates: other evidence never stands under the same name', async () => {
    const names: string[] = [];
    for (const log of [['a'], ['b']]) {
      const { rig, plain } = await atErase();
      await brings(plain, plain.evidence([{ ...planned(plain), log }]));
      names.push(...certificates(rig));
    }
    const attempt = /^erasureCertificates\.u1\.3-4-1-1-[0-9a-f]{8}$/;
    expect(names.map((name) => attempt.test(name))).toEqual([true, true]);
    expect(new Set(names).size).toBe(2);
  });
});

describe('a control plane that dies between the certificate and the record', () => {
  async function diedBetween() {
    let failing = false;
    const around = await atErase([virtioDisk], ({ kind, key }) => {
      const lost = failing && kind === 'put' && key === 'hosts.h1';
      return { kind: lost ? 'requestLost' : 'none' };
    });
    const evidence = around.plain.evidence([planned(around.plain)]);
    const { id, hostUid } = around.plain.last();
    failing = true;
    await brings(around.plain, evidence);
    expect(certificates(around.rig)).toHaveLength(1);
    expect(around.plain.ended).toBe(true);
    expect(around.plain.of('reportAnswer').map((answer) => answer.operationId)).not.toContain(id);
    failing = false;
    const { ENDED } = agent.JournalledOperation_State;
    const operations = [{ operationId: id, hostUid, state: ENDED }];
    const again = await connectAgent(around.rig, around.replica, { operations });
    return { ...around, again, evidence };
  }

  test('accepts the same certificate when the report comes again', async () => {
    const { rig, again, evidence } = await diedBetween();
    const [key = ''] = certificates(rig);
    const before = rig.read(key, wire.CertificateRecordSchema);
    await afterErase(again, evidence);
    expect(certificates(rig)).toEqual([key]);
    expect(rig.read(key, wire.CertificateRecordSchema)).toEqual(before);
    expect(rig.status()).toMatchObject({ state: HostState.AVAILABLE, dirty: false });
    const name = key.replace('.', '/').replace('.', '-');
    expect(rig.status().lastCleaned?.certificates).toEqual([name]);
  });

  test('is decided again by what stands, where the host was retired meanwhile', async () => {
    const { rig, replica, again, evidence } = await diedBetween();
    const spec = rig.record().host?.spec;
    if (spec === undefined) throw new Error('a host has a spec');
    const [key = ''] = certificates(rig);
    const before = rig.read(key, wire.CertificateRecordSchema);
    await replica.request({ kind: 'update', spec: { ...spec, retired: true }, labels: {} });
    await brings(again, evidence);
    expect(rig.read(key, wire.CertificateRecordSchema), 'it stands').toEqual(before);
    const statement = joinEvidence(before?.statement ?? new Uint8Array(), evidence.payload);
    expect(JSON.parse(new TextDecoder().decode(statement))).toMatchObject({
      disposition: 'remainsInHost',
    });
    const [certified] = rig.record().certified;
    const sha256 = createHash('sha256').update(statement).digest();
    expect(Buffer.from(certified?.statementSha256 ?? []), 'and is cited').toEqual(sha256);
    expect(again.last().kind.case).toBe('inspect');
  });

  test('refuses another statement that stands under the name', async () => {
    const { rig, again, evidence } = await diedBetween();
    const [key = ''] = certificates(rig);
    const statement = new TextEncoder().encode('{"forged":true}');
    rig.put(key, wire.CertificateRecordSchema, { statement });
    await brings(again, evidence);
    expect(rig.status().run?.outcome).toBe(RunOutcome.FAILED);
    expect(rig.status()).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
    expect(rig.read(key, wire.CertificateRecordSchema)?.statement).toEqual(statement);
    expect(again.ended).toBe(false);
  });
});

test('the next certificate of a host names the one before', async () => {
  const rig = rigWith({});
  const replica = await rig.replica();
  const plain = await connectAgent(rig, replica);
  await toAvailable(rig, plain);
  await replica.request({ kind: 'clean', steps: [] });
  await plain.report(complete());
  await plain.report(complete());
  const run = rig.status().run;
  const bootOperationId = `u1/${run?.number}/1/1`;
  const runnerReady = { hostUid: 'u1', bootOperationId, runnerSession: 's1', bootId: 'b1' };
  await plain.facts({ runnerReady });
  await plain.report(inspected());
  await brings(plain, plain.evidence([planned(plain)]));
  const texts = certificates(rig)
    .map((key) => rig.read(key, wire.CertificateRecordSchema)?.statement ?? new Uint8Array())
    .map((bytes) => JSON.parse(new TextDecoder().decode(bytes)));
  expect(texts.map(({ useEpoch }) => useEpoch)).toEqual([1, 2]);
  expect(texts[0].previousSha256).toBeNull();
  expect(texts[1].previousSha256).toMatch(/^[0-9a-f]{64}$/);
});

function plannedMethod(plain: PlainAgent): agent.ErasureMethod {
  return order(plain).devices[0]?.method ?? DISCARD;
}

/** The virtual disk, erased as it was ordered. */
function planned(plain: PlainAgent): Outcome {
  return erased(virtioDisk, plannedMethod(plain));
}
