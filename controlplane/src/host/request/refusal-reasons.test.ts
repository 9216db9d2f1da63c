/** The machine-readable reasons of refusals: one case for each reason of the host's machine. */
import { create } from '@bufbuild/protobuf';
import {
  asWorkflowUid,
  ClaimSchema,
  CleaningPolicySchema,
  DeletionMode,
  DeletionSchema,
  HoldKind,
  HoldSchema,
  HoldScope,
  HostGoal,
  type HostRefusalName,
  HostState,
  hostRefusalNames,
  store,
  userActor,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import type { HostRequest, WorkflowRequest } from '../pass/types.ts';
import { type Bench, bench, statusOf, verified } from '../testing/bench.ts';
import { rendered, script, workflowRun } from '../testing/templates.ts';

interface Case {
  readonly host: () => Bench;
  readonly request: HostRequest;
}

const by = { actor: userActor('bob') };
const clean: HostRequest = { kind: 'clean', steps: [] };
const retry: HostRequest = { kind: 'retry' };

/** Its BMC is proved, and its goal is reached. */
function manageable(): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  return host;
}

function with_(change: (host: Bench) => void, host = manageable()): () => Bench {
  return () => {
    change(host);
    return host;
  };
}

const held = (kind: HoldKind) =>
  with_((host) => {
    const by = kind === HoldKind.UNSPECIFIED ? 'user:ann' : 'system';
    const hold = { scope: HoldScope.WORK, by, reason: 'mine', kind };
    statusOf(host).holds.push(create(HoldSchema, hold));
  });

const begun = () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  return host;
};

function workflow(more: Partial<WorkflowRequest>): HostRequest {
  return {
    ...{ kind: 'workflow', workflowRun, workflowUid: asWorkflowUid('w1'), templateDigest: 'd1' },
    ...{ steps: [script('a')], timeoutMs: undefined },
    ...more,
  };
}

/** Reasons that have a case here. */
const cases: Partial<Record<HostRefusalName, Case>> = {
  busy: { host: begun, request: clean },
  state: { host: manageable, request: { kind: 'release', reason: 'over' } },
  claimed: {
    host: with_((host) => {
      statusOf(host).claim = create(ClaimSchema, { by: 'user:ann', reason: 'mine' });
    }),
    request: clean,
  },
  held: { host: held(HoldKind.UNSPECIFIED), request: clean },
  fenced: { host: held(HoldKind.FENCE_PENDING), request: clean },
  restored: { host: held(HoldKind.RESTORED), request: clean },
  deleting: {
    host: with_((host) => {
      const deletion = { by: 'user:ann', mode: DeletionMode.NORMAL };
      statusOf(host).deletion = create(DeletionSchema, deletion);
    }),
    request: clean,
  },
  nothingToDo: { host: manageable, request: retry },
  notReady: {
    host: with_((host) => {
      host.snapshot = { ...host.snapshot, hasReservations: false };
    }),
    request: clean,
  },
  oldData: {
    host: with_((host) => Object.assign(statusOf(host), { dirty: true })),
    request: { kind: 'powerOn', bootOldDiskReason: '' },
  },
  newerRecord: {
    host: with_((host) => {
      statusOf(host).state = 99 as HostState;
    }),
    request: clean,
  },
  limit: {
    host: with_((host) => {
      for (let n = 0; n < 32; n += 1) {
        const hold = { scope: HoldScope.RELEASE, by: 'user:ann', reason: `${n}` };
        statusOf(host).holds.push(create(HoldSchema, hold));
      }
    }),
    request: { kind: 'hold', scope: HoldScope.RELEASE, reason: 'one more', untilMs: undefined },
  },
  notCertified: {
    host: with_((host) => {
      const priorityOverrides = { 'deploy.erase_devices': 0 };
      const { spec } = host.record.host ?? {};
      if (spec !== undefined) spec.cleaning = create(CleaningPolicySchema, { priorityOverrides });
    }),
    request: clean,
  },
  planChanged: {
    host: manageable,
    request: {
      ...clean,
      plan: {
        record: create(store.PlanRecordSchema, { plan: { hash: 'of yesterday' } }),
        reason: '',
      },
    },
  },
  changedHands: {
    host: manageable,
    request: workflow({ use: create(store.HostUseSchema, { useEpoch: 99n }) }),
  },
  agentTooOld: {
    host: with_((host) => {
      host.snapshot = { ...host.snapshot, agentSteps: [] };
      Object.assign(statusOf(host), { state: HostState.AVAILABLE, dirty: false });
    }),
    request: { kind: 'provision', image: `registry.example/os@sha256:${'1'.repeat(64)}` },
  },
  notAllowed: {
    host: manageable,
    request: workflow({ steps: [rendered('flash', 'firmware.flash')] }),
  },
};

/** Reasons of the workflows' shell, which its own tests cover. */
const elsewhere: readonly HostRefusalName[] = ['workflowDisabled', 'workflowPending', 'notNow'];

test.each(Object.entries(cases))('a request is refused as "%s"', (name, { host, request }) => {
  const outcome = host().try({ kind: 'request', request, by });
  expect(outcome).toMatchObject({
    kind: 'refused',
    refusal: { code: 'failedPrecondition', reason: name },
  });
});

test('every reason of the list is one of these', () => {
  expect([...Object.keys(cases), ...elsewhere].toSorted()).toEqual(
    [...hostRefusalNames].toSorted(),
  );
});
