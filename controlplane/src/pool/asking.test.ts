import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  HostSchema,
  HostState,
  RunKind,
  RunOutcome,
  RunPhase,
  store as wire,
} from '@rackwright/api';
import { expect, test } from 'vitest';
import { wantedOf } from './asking.ts';
import { seenHost } from './seen.ts';

const pool = 'pools/p';
const record = create(wire.PoolRecordSchema, { pool: { name: pool } });

/** A host of the pool that was left dirty, and what it did last. */
function dirty(kind: RunKind, backoff: { nextMs?: number; givenUp?: string } | undefined) {
  const { nextMs, givenUp = '' } = backoff ?? {};
  const host = create(HostSchema, {
    ...{ name: 'hosts/h1', uid: 'u1', spec: {} },
    status: {
      ...{ state: HostState.MANAGEABLE, dirty: true, claim: { by: pool } },
      run: { number: 3n, kind, phase: RunPhase.ENDED, outcome: RunOutcome.FAILED },
      ...(backoff === undefined
        ? {}
        : {
            backoff: {
              givenUpReason: givenUp,
              ...(nextMs === undefined ? {} : { nextAttemptTime: timestampFromMs(nextMs) }),
            },
          }),
    },
  });
  const seen = seenHost(create(wire.HostRecordSchema, { host }));
  if (seen === undefined) throw new Error('it has a status');
  return seen;
}

test('a host that a deployment has left dirty is cleaned at once', () => {
  const host = dirty(RunKind.PROVISION, { nextMs: 9_000, givenUp: '3 attempts in a row failed' });
  expect(wantedOf(record, host, true, 1_000)?.kind).toBe('clean');
});

test('a clean that failed is tried again as the host would, and when a person says so', () => {
  const waiting = dirty(RunKind.CLEAN, { nextMs: 9_000 });
  expect(wantedOf(record, waiting, true, 8_999)).toBeUndefined();
  expect(wantedOf(record, waiting, true, 9_000)?.kind).toBe('clean');
  const givenUp = dirty(RunKind.CLEAN, { givenUp: '3 attempts in a row failed' });
  expect(wantedOf(record, givenUp, true, 9_000)).toBeUndefined();
  // "rackwright host retry" forgets that it was given up.
  expect(wantedOf(record, dirty(RunKind.CLEAN, undefined), true, 0)?.kind).toBe('clean');
});
