/** A host whose disks are read again after a power cycle, starting with its first clean. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { TimestampSchema } from '@bufbuild/protobuf/wkt';
import { agent, type FailureName, failureTypeOf, HostState } from '@rackwright/messages';
import { expect } from 'vitest';
import type { DocumentDraft, HostEffect } from '../pass/types.ts';
import {
  type Bench,
  bench,
  bootOfRunner,
  done,
  erased,
  inspected,
  statusOf,
  stepAt,
  verified,
  virtioDisk,
} from '../testing/bench.ts';

export const whole = 'deploy.erase_devices';
export const again = 'deploy.verify_erased';
export type Spec = Parameters<typeof bench>[0];
export type Outcome = Exclude<
  MessageInitShape<typeof agent.DeviceOutcomeSchema>,
  agent.DeviceOutcome
>;

/** The runner comes up, and names its steps; each boot has an id of its own. */
export function runnerUp(host: Bench, names = [whole, again]): void {
  const bootOperationId = bootOfRunner(statusOf(host).run);
  const steps = names.map((name) => create(agent.StepDescriptionSchema, { name, priority: 10 }));
  for (const each of steps) if (each.name !== whole) each.priority = 0;
  const runnerReady = { hostUid: 'u1', bootOperationId, runnerSession: 's1', bootId: 'b1', steps };
  const observations = create(agent.ObservationsSchema, { runnerReady });
  const value = create(agent.HostUpdatedSchema, { observations });
  const result = { case: 'hostUpdated' as const, value };
  host.apply({ kind: 'report', report: create(agent.ReportSchema, { hostUid: 'u1', result }) });
}

export function boot(host: Bench, names?: string[]): void {
  host.report(done);
  host.report(done);
  runnerUp(host, names);
}

export function brings(
  host: Bench,
  outcome: MessageInitShape<typeof agent.DeviceOutcomeSchema>,
  more: { bootId?: string; ofFailedStep?: boolean },
) {
  const evidence = host.evidence([outcome], more);
  return host.report({ case: 'complete', value: create(agent.CompleteSchema, { evidence }) });
}

/** A host whose first clean is at its erasure. */
export function atErase(spec: Spec = {}, disk = virtioDisk, names?: string[]): Bench {
  const host = bench(spec);
  host.apply({ kind: 'tick' });
  host.report(verified());
  boot(host, names);
  host.report(inspected([disk]));
  host.report(inspected([disk]));
  expect(stepAt(host)).toBe(whole);
  return host;
}

export function available(names?: string[]): Bench {
  const host = atErase({}, virtioDisk, names);
  brings(host, erased(virtioDisk), { bootId: 'b1' });
  host.report(inspected());
  host.report(done);
  expect(statusOf(host).state).toBe(HostState.AVAILABLE);
  return host;
}

/** The devices of the order, read again. */
export function reread(host: Bench, change: Outcome = {}): Outcome {
  const { kind } = host.operation();
  if (kind.case !== 'runStep') throw new Error('a step was to be ordered');
  const [plan] = kind.value.devices;
  return {
    ...(erased(virtioDisk) as Outcome),
    certificate: plan?.certificate ?? '',
    erasedSeed: plan?.erasedSeed ?? new Uint8Array(),
    ...change,
  };
}

/** The documents that a pass has signed. */
export function documentsOf(effects: readonly HostEffect[]): DocumentDraft[] {
  return effects.flatMap((effect) => (effect.kind === 'document' ? effect.documents : []));
}

export const proves = (host: Bench, bootId = 'b2', change: Outcome = {}) =>
  brings(host, reread(host, change), { bootId });

export const otherSeed = new Uint8Array(32).fill(9);
export const atFirst = create(TimestampSchema, { seconds: 1n });

export function fails(host: Bench, type: FailureName) {
  const failed = reread(host, {
    verdict: agent.VerdictKind.NOT_ERASED,
    verdictReason: 'it is back',
  });
  const evidence = host.evidence([failed], { bootId: 'b2', ofFailedStep: true });
  const value = create(agent.FailedSchema, {
    type: failureTypeOf(type),
    message: `disk DISK-1: ${type}`,
    evidence,
  });
  return host.report({ case: 'failed', value });
}
