import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Authority_Stage as Stage, store as wire } from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import {
  advanceAuthority,
  advanceReady,
  authorityAt,
  defaultTrustTiming,
  type RackTrust,
  rackTrust,
  trustFaults,
  waitsOf,
} from './rotation.ts';

const startMs = Date.UTC(2026, 10, 20);
const dayMs = 86_400_000;
const timing = defaultTrustTiming;
const sha = (letter: string): string => letter.repeat(64);

const one = (letter: string, stage: Stage, stageMs = startMs): wire.AuthorityRecord =>
  create(wire.AuthorityRecordSchema, {
    authority: {
      sha256: sha(letter),
      stage,
      stageTime: timestampFromMs(stageMs),
      expireTime: timestampFromMs(startMs + 730 * dayMs),
    },
  });

const record = (...authorities: wire.AuthorityRecord[]): wire.TrustRecord =>
  create(wire.TrustRecordSchema, { authorities, generation: 5n });

const rotating = record(one('a', Stage.ACTIVE), one('b', Stage.NEXT));
const retiring = record(one('a', Stage.RETIRED), one('b', Stage.ACTIVE));

const rack = (name: string, fields: Partial<RackTrust> = {}): RackTrust => ({
  rack: `racks/${name}`,
  isJoined: true,
  trusts: [sha('a'), sha('b')],
  signedBy: sha('b'),
  expiresMs: startMs + 7 * dayMs,
  seenMs: startMs,
  tokens: [],
  ...fields,
});

const racksWaiting = (of: wire.TrustRecord, at: Stage, racks: RackTrust[], nowMs: number) => {
  const found = authorityAt(of, at);
  if (found === undefined) throw new Error('no such stage');
  return waitsOf(of, found, racks, nowMs, timing).map(({ rack: name }) => name);
};

const stages = ({ authorities }: wire.TrustRecord) =>
  authorities.map(({ authority }) => [authority?.sha256[0], authority?.stage]);

describe('the next authority', () => {
  test('waits a day for people, whatever agents trust', () => {
    expect(advanceReady(rotating, [rack('r1')], startMs + dayMs - 1, timing)).toBeUndefined();
    const moved = advanceReady(rotating, [rack('r1')], startMs + dayMs, timing);
    expect(moved && stages(moved)).toEqual([
      ['a', Stage.RETIRED],
      ['b', Stage.ACTIVE],
    ]);
    expect(moved?.generation).toBe(6n);
  });

  test('waits for every registered agent that does not trust it, by name', () => {
    const later = startMs + 2 * dayMs;
    const racks = [
      rack('r1'),
      rack('r2', { trusts: [sha('a')] }),
      rack('r3', { trusts: [] }),
      rack('r4', { trusts: [], isJoined: false }),
    ];
    expect(racksWaiting(rotating, Stage.NEXT, racks, later)).toEqual(['racks/r2', 'racks/r3']);
    expect(advanceReady(rotating, racks, later, timing)).toBeUndefined();
  });

  test('waits for tokens that name the old one, until these end', () => {
    const later = startMs + 2 * dayMs;
    const tokens = [{ caSha256: sha('a'), expiresMs: later + 1 }];
    const racks = [rack('r1', { isJoined: false, tokens })];
    expect(racksWaiting(rotating, Stage.NEXT, racks, later)).toEqual(['racks/r1']);
    expect(racksWaiting(rotating, Stage.NEXT, racks, later + 1)).toEqual([]);
  });

  test('keeps who was given up for it', () => {
    const forced = advanceAuthority(rotating, sha('b'), ['racks/r9'], startMs);
    expect(authorityAt(forced, Stage.ACTIVE)?.authority?.givenUp).toEqual(['racks/r9']);
  });
});

describe('a retired authority', () => {
  const later = startMs + dayMs;

  test('stays while a certificate lives that it has signed', () => {
    const racks = [rack('r1'), rack('r2', { signedBy: sha('a'), expiresMs: later + 5 })];
    expect(racksWaiting(retiring, Stage.RETIRED, racks, later)).toEqual(['racks/r2']);
    expect(advanceReady(retiring, racks, later, timing)).toBeUndefined();
    const moved = advanceReady(retiring, racks, later + 5, timing);
    expect(moved && stages(moved)).toEqual([['b', Stage.ACTIVE]]);
  });

  test('stays for certificates of which nobody wrote down who signed them', () => {
    const racks = [rack('r1', { signedBy: '', expiresMs: undefined })];
    expect(advanceReady(retiring, racks, startMs + 29 * dayMs, timing)).toBeUndefined();
    expect(advanceReady(retiring, racks, startMs + 30 * dayMs, timing)).toBeDefined();
  });

  test('stays as long as replicas may take to follow', () => {
    expect(advanceReady(retiring, [], startMs + timing.retiredStayMs - 1, timing)).toBeUndefined();
    expect(advanceReady(retiring, [], startMs + timing.retiredStayMs, timing)).toBeDefined();
  });
});

describe('the authority that signs', () => {
  const alone = record(one('a', Stage.ACTIVE));

  test('waits for nothing and moves nowhere by itself', () => {
    expect(advanceReady(alone, [], startMs + 700 * dayMs, timing)).toBeUndefined();
  });

  test('is a fault in good time before its end, with the command', () => {
    expect(trustFaults(alone, [], startMs + 639 * dayMs, timing)).toEqual([]);
    const [soon = ''] = trustFaults(alone, [], startMs + 641 * dayMs, timing);
    expect(soon).toContain('in 89 days');
    expect(soon).toContain('rackwright trust rotate');
    const [over = ''] = trustFaults(alone, [], startMs + 731 * dayMs, timing);
    expect(over).toContain('no agent can connect');
  });

  test('is one beside a next one that waits for agents too long', () => {
    const racks = [rack('r2', { trusts: [sha('a')] })];
    expect(trustFaults(rotating, racks, startMs + 6 * dayMs, timing)).toEqual([]);
    expect(trustFaults(rotating, racks, startMs + 7 * dayMs, timing)[0]).toContain(
      'for 1 agent, named',
    );
  });
});

test('a rack’s record tells what rotation has to know of it', () => {
  const joined = create(wire.RackRecordSchema, {
    rack: {
      name: 'racks/r1',
      status: {
        certificateExpireTime: timestampFromMs(startMs),
        lastSeenTime: timestampFromMs(startMs - 5),
      },
    },
    agentPublicKey: new Uint8Array(3),
    trustedCaSha256: [sha('a')],
    certificateCaSha256: sha('a'),
    joinTokens: [
      { caSha256: sha('a'), expireTime: timestampFromMs(9), usedBySha256: new Uint8Array(32) },
      { caSha256: sha('b'), expireTime: timestampFromMs(8) },
    ],
  });
  expect(rackTrust(joined)).toEqual({
    rack: 'racks/r1',
    isJoined: true,
    trusts: [sha('a')],
    signedBy: sha('a'),
    expiresMs: startMs,
    seenMs: startMs - 5,
    tokens: [{ caSha256: sha('b'), expiresMs: 8 }],
  });
});
