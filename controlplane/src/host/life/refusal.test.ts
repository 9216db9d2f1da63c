/** The reason for a refusal: who holds the host, since when, and against whom. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  actors,
  asRunNumber,
  BmcEndpointSchema,
  BmcProtocol,
  HoldKind,
  HoldScope,
  HostState,
  HostStatusSchema,
  RunKind,
  RunPhase,
  readActor,
  type store,
  userActor,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { beginPass } from '../pass/pass.ts';
import type { HostRequest, HostSnapshot, Requester } from '../pass/types.ts';
import { bench } from '../testing/bench.ts';
import { holdOf, refusalOf } from './refusal.ts';

type StatusInit = Exclude<MessageInitShape<typeof HostStatusSchema>, { $typeName: string }>;

interface Host {
  readonly status?: StatusInit;
  readonly record?: Partial<store.HostRecord>;
  readonly snapshot?: Partial<HostSnapshot>;
}

const { MANAGEABLE, PROVISIONED } = HostState;
const { WORK, POWER, RELEASE } = HoldScope;
const atMs = Date.UTC(2026, 0, 1);
const at = timestampFromMs(atMs);
const ann = { actor: userActor('ann') };
const pool = { actor: readActor('pools/p') };
const bootOldDiskReason = '';
const powerOn = { kind: 'powerOn', bootOldDiskReason } as const;
const powerOff = { kind: 'powerOff' } as const;
const inspect = { kind: 'inspect' } as const;
const clean = { kind: 'clean', steps: [] } as const;
const release = { kind: 'release', reason: '' } as const;
const reimage = { kind: 'reimage', image: 'os' } as const;
const rescue = { kind: 'rescue', reason: '' } as const;
const abort = { kind: 'abort', reason: '' } as const;
const resume = { kind: 'resume', reason: '' } as const;
const retry = { kind: 'retry' } as const;

/** The host in this state. */
function passOf({ status = {}, record = {}, snapshot = {} }: Host) {
  const host = bench();
  if (host.record.host?.spec?.bmc === undefined) throw new Error('the bench has a BMC');
  host.record.host.status = create(HostStatusSchema, { state: PROVISIONED, ...status });
  const verifiedBmc = create(BmcEndpointSchema, host.record.host.spec.bmc);
  Object.assign(host.record, { verifiedBmc, ...record });
  return beginPass(host.record, { ...host.snapshot, nowMs: atMs, ...snapshot });
}

/** "claimed: hosts/h1: …"; empty: accepted. */
function whyNot(request: HostRequest, host: Host = {}, by: Requester = ann): string {
  const refusal = refusalOf(passOf(host), request, by);
  if (refusal === undefined) return '';
  return `${'reason' in refusal ? refusal.reason : ''}: ${refusal.message}`;
}

const claimedBy = (by: string, more = {}): Host => ({
  status: { claim: { by, reason: 'a shop', at }, ...more },
});
const running = (kind: RunKind, requestedBy = 'user:ann') => ({
  run: { kind, number: asRunNumber(3), phase: RunPhase.RUNNING, requestedBy, startTime: at },
});
const held = (scope: HoldScope, more = {}): Host => ({
  status: { holds: [{ scope, by: 'user:bob', reason: 'a look', since: at, ...more }] },
});

test.each<[string, HostRequest, Requester, Host, boolean]>([
  ['its user', reimage, ann, claimedBy(userActor('ann')), false],
  ['another person', reimage, ann, claimedBy(userActor('bob')), true],
  ['who only switches it off', powerOff, ann, claimedBy(userActor('bob')), true],
  ['who only switches it on', powerOn, ann, claimedBy(userActor('bob')), true],
  ['the goal, which does so', powerOn, { actor: actors.goal }, claimedBy('user:bob'), false],
  ['a person who looks', inspect, ann, claimedBy(userActor('bob'), { state: MANAGEABLE }), true],
  [
    'who looks at one of a pool',
    inspect,
    ann,
    claimedBy(readActor('pools/p'), { state: MANAGEABLE }),
    false,
  ],
  ['who rescues one of a pool', rescue, ann, claimedBy(readActor('pools/p')), false],
  ['who writes one of a pool', reimage, ann, claimedBy(readActor('pools/p')), true],
  ['another pool', { ...reimage }, { actor: readActor('pools/q') }, claimedBy('pools/p'), true],
  [
    'another pool that rescues it',
    rescue,
    { actor: readActor('pools/q') },
    claimedBy('pools/p'),
    true,
  ],
  ['who verifies its BMC', { kind: 'verify' }, ann, claimedBy(userActor('bob')), false],
])(
  'a claim keeps others from a host, and not those who may: %s',
  (_, request, by, host, isKept) => {
    expect(whyNot(request, host, by).startsWith('claimed: ')).toBe(isKept);
  },
);

test('a refusal for a claim names its reason, its time and what ends it', () => {
  expect(whyNot(reimage, claimedBy('user:bob'))).toBe(
    'claimed: hosts/h1: claimed by user:bob since 2026-01-01T00:00:00Z (a shop); ' +
      'it must be unclaimed first',
  );
  const bare = { status: { claim: { by: 'pools/p' } } };
  expect(whyNot(reimage, bare)).toBe(
    'claimed: hosts/h1: claimed by pools/p since an unknown time; ' +
      'take it out of what pools/p selects first, and it gives the host up',
  );
});

test('the run of a host’s user is ended only by that user, a pool or an administrator', () => {
  const own = (requestedBy = 'user:bob') =>
    claimedBy('user:bob', running(RunKind.REIMAGE, requestedBy));
  expect(whyNot(abort, own())).toContain('claimed by user:bob');
  expect(whyNot(abort, own(), { ...ann, mayEndOthersUse: true })).toBe('');
  expect(whyNot(abort, own(), { actor: userActor('bob') })).toBe('');
  expect(whyNot(abort, own(), { actor: actors.system })).toBe('');
  expect(whyNot(abort, own('user:eve'))).toBe('');
  expect(whyNot(abort, { status: running(RunKind.REIMAGE) })).toBe('');
});

test('a resume of a failed clean erases, and is refused on a claimed host', () => {
  const resumed = (more: StatusInit = {}) =>
    whyNot(resume, claimedBy('user:bob', { state: MANAGEABLE, ...more }));
  expect(resumed()).toContain('claimed by user:bob');
  expect(resumed(running(RunKind.CLEAN))).not.toContain('claimed by');
});

test('a deletion keeps its host from orders, until it is taken back', () => {
  const deleting = { status: { deletion: { by: 'user:eve', reason: 'sold', at } } };
  expect(whyNot(release, deleting)).toBe(
    'deleting: hosts/h1: user:eve asked for its deletion since 2026-01-01T00:00:00Z; ' +
      'take that back first (cancel-delete)',
  );
  expect(whyNot(powerOff, deleting)).toContain('cancel-delete');
  expect(whyNot(retry, deleting)).toBe('');
  expect(whyNot({ kind: 'delete', reason: '' }, deleting)).toBe('');
  const undated = { status: { deletion: { by: 'user:eve' } } };
  expect(whyNot(release, undated)).toContain('its deletion since an unknown time; take');
});

test('a pool takes no host of a restored store before a person has looked; a person may', () => {
  const restored = { record: { lookFirstSince: at } };
  expect(whyNot(reimage, restored, pool)).toMatch(/^restored: hosts\/h1: the store was restored/);
  expect(whyNot(reimage, restored)).toBe('');
  const looked = { ...restored, status: { state: MANAGEABLE } };
  expect(whyNot(inspect, looked, pool)).toBe('');
  expect(whyNot(reimage, {}, pool)).toBe('');
});

test.each<[string, HoldScope, readonly HostRequest[], readonly HostRequest[]]>([
  ['work', WORK, [release, reimage, powerOn, rescue, retry, resume], [abort]],
  ['power', POWER, [powerOn, powerOff], [release, reimage, retry]],
  ['release', RELEASE, [release], [powerOff, reimage, rescue]],
])('a hold of %s keeps a host from what needs that', (name, scope, kept, free) => {
  const run = (kind: string) => (kind === 'abort' ? running(RunKind.REIMAGE) : {});
  const host = (kind: string): Host => ({
    status: { ...held(scope).status, ...(kind === 'resume' ? { state: MANAGEABLE } : run(kind)) },
  });
  for (const request of kept) {
    expect(whyNot(request, host(request.kind))).toBe(
      `held: hosts/h1: its ${name} is held by user:bob since 2026-01-01T00:00:00Z: a look; ` +
        'release the hold first',
    );
  }
  for (const request of free) expect(whyNot(request, host(request.kind))).toBe('');
});

test('a refusal for a hold names who or what set it, and its end', () => {
  const bySystem = (kind: HoldKind) => whyNot(release, held(WORK, { by: 'system', kind }));
  expect(bySystem(HoldKind.FENCE_PENDING)).toMatch(/^fenced: /);
  expect(bySystem(HoldKind.RESTORED)).toMatch(/^restored: /);
  expect(bySystem(HoldKind.UNKNOWN_WORK)).toMatch(/^held: /);
  expect(whyNot(release, held(WORK, { kind: HoldKind.RESTORED }))).toMatch(/^held: /);
  expect(whyNot(release, held(WORK, { until: timestampFromMs(atMs + 1_000) }))).toContain(
    'since 2026-01-01T00:00:00Z, until 2026-01-01T00:00:01Z: a look; release',
  );
  const pass = passOf(held(POWER));
  expect([holdOf(pass, POWER)?.by, holdOf(pass, WORK)]).toEqual(['user:bob', undefined]);
});

test('a hold does not refuse a retry while a run or a deletion goes on', () => {
  const deletion = { by: 'user:eve', reason: 'sold', at };
  const retried = (more: StatusInit) =>
    whyNot(retry, { status: { ...held(WORK).status, ...more } });
  expect(retried({})).toContain('its work is held');
  expect(retried({ deletion })).toBe('');
  expect(retried(running(RunKind.REIMAGE))).not.toContain('its work is held');
});

test('a request that a run holds up names the run, its step and since when', () => {
  const busy = whyNot(clean, { status: { state: MANAGEABLE, ...running(RunKind.INSPECT) } });
  expect(busy).toMatch(
    /^busy: hosts\/h1: busy: inspect 3 holds the host \(at .*\) since 2026-01-01T00:00:00Z; /,
  );
  expect(whyNot(clean, { status: { state: PROVISIONED } })).toMatch(/^state: hosts\/h1: /);
});

test('a missing requirement of orders refuses orders, and no other requests', () => {
  const lacking = { snapshot: { credentialVersion: undefined } };
  expect(whyNot(powerOff, lacking)).toMatch(/^notReady: .*does not exist$/);
  expect(whyNot(retry, lacking)).toMatch(/^notReady: /);
  expect(whyNot({ kind: 'claim', reason: '' }, lacking)).toBe('');
  expect(whyNot(powerOff)).toBe('');
});

test('a BMC that is another one than was proved switches nothing before it is verified', () => {
  const other = create(BmcEndpointSchema, { address: '10.9.9.9', protocol: BmcProtocol.WEBHOOK });
  const changed = { record: { verifiedBmc: other } };
  expect(whyNot(powerOff, changed)).toMatch(/^notReady: .*rackwright host verify h1$/);
  expect(whyNot({ kind: 'verify' }, changed)).toBe('');
  expect(whyNot({ kind: 'claim', reason: '' }, changed)).toBe('');
});
