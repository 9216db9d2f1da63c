/** What a program is told of a refusal: one case for each reason that the host's machine gives. */
import { create } from '@bufbuild/protobuf';
import {
  ClaimSchema,
  DeletionMode,
  DeletionSchema,
  HoldKind,
  HoldSchema,
  HoldScope,
  HostGoal,
  type HostRefusalName,
  type HostState,
  hostRefusalNames,
} from '@rackwright/api';
import { expect, test } from 'vitest';
import { type Bench, bench, statusOf, verified } from '../testing/bench.ts';
import type { HostRequest } from '../turn/types.ts';

interface Case {
  readonly host: () => Bench;
  readonly request: HostRequest;
}

const by = { actor: 'user:bob' };
const clean: HostRequest = { kind: 'clean', steps: [] };
const retry: HostRequest = { kind: 'retry' };

/** Its BMC is proved, and nothing is asked of it. */
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

/** Reasons of which a case is made here. */
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
      host.context = { ...host.context, reservationsHeld: false };
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
};

/** What tests beside the code that says it show: plans, workflows, deployments, erasures. */
const elsewhere: readonly HostRefusalName[] = [
  ...(['notCertified', 'planChanged', 'changedHands', 'agentTooOld', 'notAllowed'] as const),
  ...(['workflowDisabled', 'workflowPending', 'notNow'] as const),
];

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
