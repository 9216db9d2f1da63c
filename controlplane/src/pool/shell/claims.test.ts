/** Which hosts a pool sends requests to, and how it handles the answers. */
import { create } from '@bufbuild/protobuf';
import { readActor, userActor, store as wire } from '@rackwright/messages';
import type { LogFields } from '@rackwright/platform';
import { expect, test } from 'vitest';
import { seen } from '../decide/rollout.fixture.ts';
import { sendHostRequests } from './asking.ts';
import type { PoolHosts } from './slot-run.ts';

type Outcome = Awaited<ReturnType<PoolHosts['request']>>;

const pool = readActor('pools/p');
const record = create(wire.PoolRecordSchema, {
  pool: { name: pool, spec: { hosts: { labels: { pool: 'p' } } } },
  members: [{ hostUid: 'u1' }, { hostUid: 'u3' }],
});
const kept = new Map([['u1', { record: create(wire.HostRecordSchema), revision: 7 }]]);

async function ask(outcomes: Readonly<Record<string, Outcome>>, callOffs = new Map()) {
  const asked: unknown[] = [];
  const lines: { fields: LogFields; message: string }[] = [];
  const hosts: PoolHosts = {
    request: async (hostId, { kind }, { actor }, revision) => {
      asked.push([hostId, kind, actor, revision]);
      return outcomes[hostId] ?? { kind: 'notFound' };
    },
  };
  const log = {
    debug: (fields: LogFields, message: string) => void lines.push({ fields, message }),
  };
  // Its own already, one that leaves, one that joins, and one of another owner.
  const world = [
    seen(1),
    seen(2, { claimedBy: pool }),
    seen(3, { claimedBy: pool }),
    seen(4, { claimedBy: userActor('ann') }),
  ];
  const changed = await sendHostRequests({ hosts, log }, record, { hosts: world, kept }, callOffs);
  return { asked, lines, changed };
}

test('each host is asked for what it owes, at the revision that was looked at', async () => {
  const { asked } = await ask({});
  expect(asked).toEqual([
    ['h1', 'claim', pool, 7],
    ['h2', 'unclaim', pool, undefined],
  ]);
});

test('a host that is called off is aborted, whatever else it would owe', async () => {
  const { asked } = await ask({}, new Map([['u2', 'the window has shut']]));
  expect(asked).toEqual([
    ['h1', 'claim', pool, 7],
    ['h2', 'abort', pool, undefined],
  ]);
});

test('a round counts the hosts that changed, and says why one did not', async () => {
  const changed = create(wire.HostRecordSchema);
  const refusal = { reason: 'busy', message: 'clean 3 holds the host' } as const;
  const accepted = { kind: 'accepted', record: changed, revision: 8 } as const;
  const both = await ask({ h1: accepted, h2: { kind: 'removed' } });
  expect([both.changed, both.lines]).toEqual([2, []]);
  const busy = await ask({ h1: { kind: 'refused', code: 'failedPrecondition', ...refusal } });
  expect(busy.changed).toBe(0);
  expect(busy.lines).toEqual([
    { fields: { pool, host: 'hosts/h1', action: 'claim' }, message: refusal.message },
  ]);
  const moved = await ask({ h1: { kind: 'refused', code: 'aborted', message: 'it has changed' } });
  expect([moved.changed, moved.lines]).toEqual([0, []]);
});
