/** A dispatcher with a session, a clock and links of its own, and nothing else. */
import { create } from '@bufbuild/protobuf';
import { VirtualClock } from '@rackwright/bmc/conformance';
import { agent, type OperationId } from '@rackwright/messages';
import { afterMicrotasks, quietLog } from '@rackwright/platform/testing';
import type { FinalResult, Result } from '@rackwright/results';
import { resultToWire } from '@rackwright/results';
import type { OperationContext, Progress, SessionBrake } from '../session/index.ts';
import { defaultDispatcherLimits, RunnerDispatcher } from './dispatcher.ts';
import { noHandOffs } from './hand-offs.ts';
import type { RunnerLink, RunnerOrder, ToRunner } from './link.ts';
import { testSigner } from './testing.ts';

export const boot = 'boot-1';
export const complete: FinalResult = { kind: 'complete' };

interface OrderOptions {
  readonly destructive?: boolean;
  readonly mode?: agent.StepMode;
  readonly runnerSession?: string;
}

export function orderOf({ destructive, mode, runnerSession }: OrderOptions = {}): RunnerOrder {
  const value = create(agent.RunStepSchema, {
    step: 'deploy.erase_devices',
    bootOperationId: boot,
    mode: mode ?? agent.StepMode.RUN,
    ...(destructive === undefined ? {} : { destructive }),
    ...(runnerSession === undefined ? {} : { runnerSession }),
  });
  const kind = { case: 'runStep', value } as const;
  const operation = create(agent.OperationSchema, {
    id: 'op',
    hostUid: 'uid',
    kind,
  });
  return { operation, bootOperationId: boot, order: kind };
}

export function setUp() {
  const clock = new VirtualClock();
  let state: 'unknown' | 'received' | 'begun' | 'ended' = 'begun';
  const session = {
    lease: true,
    brake: undefined as SessionBrake | undefined,
    begun: 0,
    dueAtMs: Infinity,
    heard: [] as Progress[],
  };
  const aborter = new AbortController();
  const dispatcher = new RunnerDispatcher({
    clock,
    log: quietLog,
    signer: testSigner(),
    operationState: () => state,
    handOffs: noHandOffs,
    limits: defaultDispatcherLimits,
  });
  const context: OperationContext = {
    signal: aborter.signal,
    begin: async () => {
      session.begun += 1;
    },
    reportProgress: (progress) => session.heard.push(progress),
    credential: () => Promise.reject(new Error('no credential is needed')),
    isLeaseValid: () => session.lease,
    leaseLeftMs: () => (session.lease ? 9_000 : 0),
    brake: () => session.brake,
    remainingMs: () => session.dueAtMs - clock.suspendAwareMs(),
    openGrant: () => Promise.reject(new Error('no grant is opened')),
    closeGrants: async () => {},
  };
  /** The messages to the runner, one line each. */
  const told: string[] = [];
  type TestLink = { -readonly [Key in keyof RunnerLink]: RunnerLink[Key] };
  const link = (unreceived: readonly string[] = [], bootOperationId = boot): TestLink => {
    const made: TestLink = {
      bootOperationId,
      hostUid: 'uid',
      runnerSession: 'session',
      steps: [],
      rescue: false,
      architecture: '',
      imageEndpoint: '',
      unreceived: new Set(unreceived),
      send: (message) => told.push(lineOf(message)),
      close: () => told.push('closed'),
    };
    return made;
  };
  const says = (from: RunnerLink, operationId: OperationId, result: Result): void => {
    const report = create(agent.ReportSchema, { operationId, result: resultToWire(result) });
    dispatcher.report(from, report, undefined);
  };
  const setState = (next: typeof state): void => {
    state = next;
  };
  return { aborter, clock, context, dispatcher, link, says, session, setState, told };
}

function lineOf(message: ToRunner): string {
  switch (message.case) {
    case 'order':
      return `order ${message.value.operationId} ${message.value.kind?.case}`;
    case 'reportReceived':
      return `received ${message.value.operationId}`;
    default:
      return String(message.case);
  }
}

/** Lets promises settle without letting time pass. */
export async function settled(): Promise<void> {
  await afterMicrotasks(20);
}
