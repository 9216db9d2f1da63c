/** Helpers for tests of a host on the bench that is to be deleted. */
import { clone, equals } from '@bufbuild/protobuf';
import {
  type AbandonedResource,
  DeletionMode,
  HostGoal,
  HostState,
  type RunKind,
  RunPhase,
  store,
  userActor,
} from '@rackwright/messages';
import { expect } from 'vitest';
import { type HostEffect } from '../pass/types.ts';
import { type Bench, bench, verified } from './bench.ts';

export const normal = { kind: 'delete', reason: 'sold' } as const;
export const force = { kind: 'delete', mode: DeletionMode.FORCE, reason: 'burnt down' } as const;
export const callMs = 60_000;

export function statusOf(host: Bench) {
  const status = host.record.host?.status;
  if (status === undefined) throw new Error('no status');
  return status;
}

export function runKind(host: Bench): RunKind | undefined {
  const { run } = statusOf(host);
  return run?.phase === RunPhase.ENDED ? undefined : run?.kind;
}

export function abandonedIn(effects: readonly HostEffect[]): AbandonedResource | undefined {
  return effects.flatMap((effect) => (effect.kind === 'abandon' ? [effect.resource] : []))[0];
}

/** A verified host without work, in manageable. */
export function manageable(): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  return host;
}

/** A host that runs an image. */
export function provisioned(spec: Parameters<typeof bench>[0] = {}): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE, ...spec });
  host.apply({ kind: 'tick' });
  host.report(verified());
  host.record = clone(store.HostRecordSchema, host.record);
  const status = statusOf(host);
  status.state = HostState.PROVISIONED;
  status.poweredOn = true;
  return host;
}

/** A host whose power off, during its deletion, is in progress. */
export function switchingOff(request: typeof normal | typeof force): Bench {
  const host = manageable();
  statusOf(host).poweredOn = true;
  host.request(request);
  expect(host.operation().kind.case).toBe('setPower');
  return host;
}

export function agentLeaves(host: Bench): void {
  host.snapshot = { ...host.snapshot, session: undefined };
}

export function pass(host: Bench, ms: number): readonly HostEffect[] {
  host.nowMs += ms;
  const { session } = host.snapshot;
  if (session !== undefined) {
    host.snapshot = { ...host.snapshot, session: { ...session, lastMessageMs: host.nowMs } };
  }
  return host.apply({ kind: 'tick' });
}

/** The refusal of a request; the record must be the same, byte for byte. */
export function refusalOf(host: Bench, request: Parameters<Bench['request']>[0]): string {
  const before = clone(store.HostRecordSchema, host.record);
  const outcome = host.try({ kind: 'request', request, by: { actor: userActor('test') } });
  expect(equals(store.HostRecordSchema, before, host.record)).toBe(true);
  return outcome.kind === 'refused' ? outcome.refusal.message : `accepted: ${outcome.kind}`;
}
