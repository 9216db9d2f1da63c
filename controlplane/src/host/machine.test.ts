import { create, equals } from '@bufbuild/protobuf';
import { durationFromMs, timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  DeletionMode,
  FailureType,
  HostGoal,
  HostState,
  RunKind,
  RunOutcome,
  RunPhase,
  store,
  TransientCause,
  userActor,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { requests, requestsDuringRun } from './life/machine-tables.ts';
import { type KnownRunKind, landings, type State } from './pass/transitions.ts';
import {
  bench,
  done,
  driveToErase,
  erased,
  failed,
  inspected,
  nvmeDisk,
  startMs,
  verified,
  virtioDisk,
} from './testing/bench.ts';

const stateOf = (record: store.HostRecord) => record.host?.status?.state;
const runOf = (record: store.HostRecord) => record.host?.status?.run;

test('a new host becomes available by itself, through verify, inspect and clean', () => {
  const host = bench();
  driveToErase(host);
  expect(host.operation().kind.case).toBe('runStep');
  const effects = host.report({
    case: 'complete',
    value: create(agent.CompleteSchema, { evidence: host.evidence([erased(virtioDisk)]) }),
  });
  expect(effects.filter((effect) => effect.kind === 'certify')).toHaveLength(1);
  host.report(inspected());
  host.report(done);
  expect(stateOf(host.record)).toBe(HostState.AVAILABLE);
  expect(host.record.host?.status?.dirty).toBe(false);
  expect(host.record.host?.status?.lastCleaned?.certificates).toEqual([
    expect.stringMatching(/^erasureCertificates\/u1-3-4-1-1-[0-9a-f]{8}$/),
  ]);
});

test('a host whose goal is manageable stays there', () => {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  expect(stateOf(host.record)).toBe(HostState.MANAGEABLE);
  expect(runOf(host.record)?.phase).toBe(RunPhase.ENDED);
});

test('H4: an operation is in the record with its journal when it is sent', () => {
  const host = bench();
  const effects = host.apply({ kind: 'tick' });
  const sent = effects.find((effect) => effect.kind === 'send');
  expect(sent?.kind === 'send' && sent.operation.id).toBe('u1/1/0/1');
  expect(host.record.operation?.sentTo?.id).toBe('j1');
});

test('R2: a look that changes nothing leaves the record as it is', () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  const before = host.record;
  host.apply({ kind: 'tick' });
  expect(equals(store.HostRecordSchema, before, host.record)).toBe(true);
});

test('R3: a Hello that does not list the operation has it sent again under its id', () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  const journal = create(agent.JournalSchema, { id: 'j1', generation: 2n });
  host.snapshot = {
    ...host.snapshot,
    session: { journal, lastMessageMs: startMs, openedMs: startMs, awaitsReport: false },
  };
  const effects = host.apply({ kind: 'hello', journal, listed: [] });
  expect(effects).toContainEqual(expect.objectContaining({ kind: 'send' }));
  expect(host.operation().id).toBe('u1/1/0/1');
  expect(host.record.operation?.sentTo?.generation).toBe(2n);
});

test('G1: between the acceptance of a loss and the Hello of the agent, nothing is sent', () => {
  const host = bench();
  const { session } = host.snapshot;
  host.snapshot = { ...host.snapshot, session: undefined };
  host.apply({ kind: 'tick' });
  expect(runOf(host.record)?.waiting?.reason).toBe('agent');
  host.snapshot = { ...host.snapshot, restored: 'the store was restored' };
  host.apply({ kind: 'tick' });
  host.snapshot = { ...host.snapshot, session, restored: undefined };
  const sent = host.apply({ kind: 'tick' }).filter(({ kind }) => kind === 'send');
  expect(sent).toEqual([]);
  expect(runOf(host.record)?.waiting?.reason).toBe('restored');
  const journal = create(agent.JournalSchema, { id: 'j1', generation: 2n });
  host.apply({ kind: 'hello', journal, listed: [] });
  expect(runOf(host.record)?.outcome).toBe(RunOutcome.FAILED);
  expect(host.record.host?.status?.holds).toEqual([]);
});

test.each([DeletionMode.NORMAL, DeletionMode.FORCE])(
  'B2: no machine is switched off for a removal before the loss is accepted, mode %s',
  (mode) => {
    const host = bench({ goal: HostGoal.MANAGEABLE });
    host.apply({ kind: 'tick' });
    host.report(verified());
    const { status } = host.record.host ?? {};
    if (status === undefined) throw new Error('a host has a status');
    status.poweredOn = true;
    host.snapshot = { ...host.snapshot, restored: 'the store was restored' };
    host.apply({ kind: 'tick' });
    const asked = host.request({ kind: 'delete', mode, reason: 'sold' });
    expect(asked.filter(({ kind }) => kind === 'send')).toEqual([]);
    expect(runOf(host.record)?.kind).toBe(RunKind.DELETE);
    for (let count = 0; count < 5; count++) {
      host.nowMs += 30_000;
      const effects = host.apply({ kind: 'tick' });
      expect(effects.filter(({ kind }) => kind === 'send')).toEqual([]);
    }
  },
);

test('R7: a late report of an ended attempt is stale and changes nothing', () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  const first = host.operation().id;
  host.report({
    case: 'transientError',
    value: create(agent.TransientErrorSchema, {
      cause: TransientCause.UNREACHABLE,
      message: 'silent',
    }),
  });
  const before = host.record;
  const effects = host.report(verified(), first);
  expect(effects).toEqual([
    { kind: 'answer', verdict: expect.objectContaining({ kind: 'stale' }) },
  ]);
  expect(equals(store.HostRecordSchema, before, host.record)).toBe(true);
});

test('R8: a result of an unknown kind is refused and holds the host', () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  const effects = host.report({ case: undefined });
  expect(effects).toContainEqual({
    kind: 'answer',
    verdict: { kind: 'refused', cause: 'unsupported', reason: 'unsupported' },
  });
  expect(host.record.host?.status?.holds).toHaveLength(1);
});

test('R9: an operation sent to a journal that is lost is interrupted, not sent again', () => {
  const host = bench();
  driveToErase(host, [nvmeDisk]);
  const lost = host.operation().id;
  const journal = create(agent.JournalSchema, { id: 'j2', generation: 1n });
  host.snapshot = {
    ...host.snapshot,
    session: { journal, lastMessageMs: startMs, openedMs: startMs, awaitsReport: false },
  };
  const effects = host.apply({ kind: 'hello', journal, listed: [] });
  const sent = effects.flatMap((effect) => (effect.kind === 'send' ? [effect.operation] : []));
  expect(sent.map((operation) => operation.id)).not.toContain(lost);
  // The boot grant was in that journal, too: no runner of this boot is accepted again.
  expect(sent.map((operation) => operation.id)).toEqual(['u1/3/0/1']);
});

test('R4: an interrupted overwrite or discard runs again as a new operation', () => {
  const host = bench();
  driveToErase(host, [virtioDisk]);
  const first = host.operation().id;
  host.report(failed('interrupted'));
  expect(host.operation().id).not.toBe(first);
  const { kind } = host.operation();
  expect(kind.case === 'runStep' && kind.value.mode).toBe(agent.StepMode.RUN);
});

test('R4: an interrupted format is checked, and runs again only when the check fails', () => {
  const host = bench();
  driveToErase(host, [nvmeDisk]);
  const seed = seedOf(host.operation());
  host.report(failed('interrupted'));
  expect(modeOf(host.operation())).toBe(agent.StepMode.CHECK);
  expect(seedOf(host.operation())).toEqual(seed);
  host.report(failed('notErased'));
  expect(modeOf(host.operation())).toBe(agent.StepMode.RUN);
  expect(seedOf(host.operation())).not.toEqual(seed);
});

test('R5: a deadline does not fire while the agent is silent, and does once it has spoken', () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  host.nowMs += 3_600_000;
  host.apply({ kind: 'tick' });
  expect(runOf(host.record)?.phase).toBe(RunPhase.RUNNING);
  const { session } = host.snapshot;
  if (session !== undefined) {
    host.snapshot = { ...host.snapshot, session: { ...session, lastMessageMs: host.nowMs } };
  }
  host.apply({ kind: 'tick' });
  expect(runOf(host.record)?.outcome).toBe(RunOutcome.TIMED_OUT);
});

test('R5: a report that Hello announced is awaited beyond the deadline', () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  host.nowMs += 3_600_000;
  const journal = create(agent.JournalSchema, { id: 'j1', generation: 1n });
  host.snapshot = {
    ...host.snapshot,
    session: { journal, lastMessageMs: host.nowMs, openedMs: host.nowMs, awaitsReport: true },
  };
  host.apply({ kind: 'tick' });
  expect(runOf(host.record)?.phase).toBe(RunPhase.RUNNING);
});

test('with the agent away a run waits, says for what and since when, and nothing fails', () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  host.snapshot = { ...host.snapshot, session: undefined };
  host.nowMs += 1_000;
  host.apply({ kind: 'tick' });
  const waiting = runOf(host.record)?.waiting;
  expect(waiting?.reason).toBe('agent');
  expect(waiting?.since).toEqual(timestampFromMs(startMs + 1_000));
  host.nowMs += 86_400_000;
  host.apply({ kind: 'tick' });
  expect(runOf(host.record)?.waiting?.since).toEqual(timestampFromMs(startMs + 1_000));
  expect(runOf(host.record)?.phase).toBe(RunPhase.WAITING);
});

test('a conflict keeps errors and counts, and fails only after its budget', () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  const conflict = () =>
    host.report({
      case: 'retryAfter',
      value: create(agent.RetryAfterSchema, {
        reason: agent.ConflictReason.LOCKED,
        message: 'the BMC is locked',
        delay: durationFromMs(1_000),
      }),
    });
  conflict();
  expect(runOf(host.record)?.waiting?.reason).toBe('conflict');
  expect(host.record.host?.status?.lastError).toBeUndefined();
  host.nowMs += 16 * 60_000;
  const { session } = host.snapshot;
  if (session !== undefined) {
    host.snapshot = { ...host.snapshot, session: { ...session, lastMessageMs: startMs } };
  }
  host.apply({ kind: 'tick' });
  conflict();
  expect(host.record.host?.status?.lastError?.failure?.type).toBe(FailureType.CONFLICT);
});

test('transient errors never fail a host at once, and become a visible fault in a row', () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  for (let count = 1; count <= 5; count++) {
    host.report({
      case: 'transientError',
      value: create(agent.TransientErrorSchema, {
        cause: TransientCause.UNREACHABLE,
        message: 'BMC silent',
      }),
    });
    expect(runOf(host.record)?.phase).toBe(RunPhase.WAITING);
    host.nowMs += 61_000;
    host.apply({ kind: 'tick' });
  }
  expect(host.record.host?.status?.faults.map((fault) => fault.type)).toEqual(['bmcUnreachable']);
  host.report(verified());
  expect(host.record.host?.status?.faults).toEqual([]);
});

test('a second start is refused, naming the run that holds the host', () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  const before = host.record;
  const outcome = host.try({
    kind: 'request',
    request: { kind: 'clean', steps: [] },
    by: { actor: userActor('test') },
  });
  expect(outcome.kind === 'refused' && outcome.refusal.message).toContain('verify 1');
  expect(host.record).toBe(before);
});

test('a delete is refused at once while a clean holds the host', () => {
  const host = bench();
  driveToErase(host);
  const outcome = host.try({
    kind: 'request',
    request: { kind: 'delete', reason: '' },
    by: { actor: userActor('test') },
  });
  expect(outcome.kind === 'refused' && outcome.refusal.message).toContain('clean 3');
});

test('a delete without a run removes the host once the agent has forgotten it', () => {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  const effects = host.request({ kind: 'delete', reason: 'sold' });
  expect(effects).toContainEqual({ kind: 'forget' });
  expect(host.removed).toBe(false);
  host.apply({ kind: 'forgotten' });
  expect(host.removed).toBe(true);
});

test('a delete during a verify cancels it and then removes the host', () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  const effects = host.request({ kind: 'delete', reason: '' });
  expect(effects).toContainEqual(expect.objectContaining({ kind: 'cancel' }));
  host.report(failed('cancelled'));
  expect(runOf(host.record)?.kind).toBe(RunKind.DELETE);
  host.apply({ kind: 'forgotten' });
  expect(host.removed).toBe(true);
});

test('an abort ends the run cancelled once the agent has stopped', () => {
  const host = bench();
  driveToErase(host);
  host.request({ kind: 'abort', reason: 'wrong host' });
  expect(runOf(host.record)?.phase).toBe(RunPhase.RUNNING);
  host.report(failed('cancelled'));
  expect(runOf(host.record)?.outcome).toBe(RunOutcome.CANCELLED);
  expect(stateOf(host.record)).toBe(HostState.MANAGEABLE);
  expect(host.record.host?.status?.backoff?.givenUpReason).toContain('aborted');
});

test('an abort without an id of a run that is being aborted changes nothing', () => {
  const host = bench();
  driveToErase(host);
  host.request({ kind: 'abort', reason: 'wrong host' });
  const before = host.record;
  host.nowMs += 10;
  host.request({ kind: 'abort', reason: 'wrong host' });
  expect(host.record).toEqual(before);
});

test('a failed goal is tried again after its back-off, and given up after three failures', () => {
  const host = bench();
  for (let failure = 1; failure <= 3; failure++) {
    host.apply({ kind: 'tick' });
    host.report(failed('notApplied'));
    expect(host.record.host?.status?.backoff?.failures).toBe(failure);
    host.nowMs += 3_600_000;
  }
  expect(host.record.host?.status?.backoff?.givenUpReason).toContain('3 attempts');
  host.apply({ kind: 'tick' });
  expect(runOf(host.record)?.phase).toBe(RunPhase.ENDED);
  host.request({ kind: 'verify' });
  expect(runOf(host.record)?.phase).toBe(RunPhase.RUNNING);
});

test('a manual list with an unknown step is refused, naming the field and the known steps', () => {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  const outcome = host.try({
    kind: 'request',
    request: { kind: 'clean', steps: [{ step: 'deploy.erase', arguments: {} }] },
    by: { actor: userActor('test') },
  });
  const violations = outcome.kind === 'refused' ? outcome.refusal.fieldViolations : [];
  expect(violations?.[0]?.field).toBe('steps[0].step');
  expect(violations?.[0]?.description).toContain('deploy.erase_devices');
});

test('a repeated request id is applied once', () => {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  const event = {
    kind: 'request',
    request: { kind: 'inspect' },
    by: { actor: userActor('test'), requestId: 'q1' },
  } as const;
  host.apply(event);
  const { runCount } = host.record;
  host.apply(event);
  expect(host.record.runCount).toBe(runCount);
});

test('every cell of the tables has an answer that a person can read', () => {
  for (const cells of [...Object.values(requests), ...Object.values(requestsDuringRun)]) {
    for (const cell of Object.values(cells)) {
      expect(cell === 'accept' || typeof cell.refuse === 'string').toBe(true);
    }
  }
  const kinds = Object.keys(landings).map(Number) as KnownRunKind[];
  const gone = kinds.filter((kind) => {
    return landings[kind][RunOutcome.SUCCEEDED].to === HostState.GONE;
  });
  expect(gone).toEqual([RunKind.DELETE]);
  const faulty = kinds.filter((kind) => landings[kind][RunOutcome.CANCELLED].fault !== undefined);
  expect(faulty).toEqual([RunKind.REIMAGE]);
  const states = Object.keys(requests.delete).map(Number) as State[];
  expect(states.filter((state) => requests.delete[state] !== 'accept')).toEqual([HostState.GONE]);
});

test('a power request during a clean is refused and orders nothing', () => {
  const host = bench();
  driveToErase(host);
  const before = host.record;
  const request = { kind: 'powerOff' } as const;
  const outcome = host.try({ kind: 'request', request, by: { actor: userActor('test') } });
  expect(outcome.kind === 'refused' && outcome.refusal.message).toContain('clean 3');
  expect(host.record).toBe(before);
});

test('a power request during a verify waits for its end', () => {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  host.request({ kind: 'verify' });
  host.request({ kind: 'powerOff' });
  expect(runOf(host.record)?.kind).toBe(RunKind.VERIFY);
  host.report(verified());
  expect(runOf(host.record)?.kind).toBe(RunKind.POWER);
  host.report(done);
  expect(host.record.host?.status?.poweredOn).toBe(false);
});

test('a dirty host boots its old disk only for a reason, which raises the use epoch', () => {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  const by = { actor: userActor('test') };
  const refused = host.try({
    kind: 'request',
    request: { kind: 'powerOn', bootOldDiskReason: '' },
    by,
  });
  expect(refused.kind === 'refused' && refused.refusal.message).toContain('boot_old_disk_reason');
  host.request({ kind: 'powerOn', bootOldDiskReason: 'forensics' });
  expect(host.record.host?.status?.useEpoch).toBe(2n);
  const { kind } = host.operation();
  expect(kind.case === 'setPower' && kind.value.bootFrom).toBe(agent.BootTarget.DISK);
});

test('a changed BMC endpoint is verified before anything else', () => {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  const spec = host.record.host?.spec;
  const bmc = spec?.bmc;
  if (spec === undefined || bmc === undefined) throw new Error('no spec');
  host.request({ kind: 'update', spec: { ...spec, bmc: { ...bmc, port: 6230 } }, labels: {} });
  expect(runOf(host.record)?.number).toBe(2n);
  expect(host.operation().kind.case).toBe('verifyAccess');
  host.report(verified());
  expect(runOf(host.record)?.phase).toBe(RunPhase.ENDED);
});

test('a replica without the stream says nothing of an agent that another replica holds', () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  host.snapshot = { ...host.snapshot, session: undefined, sessionElsewhere: true };
  const before = host.record;
  host.apply({ kind: 'tick' });
  expect(equals(store.HostRecordSchema, before, host.record)).toBe(true);
});

function modeOf(operation: agent.Operation) {
  return operation.kind.case === 'runStep' ? operation.kind.value.mode : undefined;
}

function seedOf(operation: agent.Operation) {
  return operation.kind.case === 'runStep' ? operation.kind.value.challengeSeed : undefined;
}
