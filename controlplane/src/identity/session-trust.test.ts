/** What ends an agent's session: a revoked key, an expired certificate. */
import { X509Certificate } from 'node:crypto';
import type { CallContext } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { nodeRandom } from '@rackwright/platform/node';
import { beforeEach, expect, test } from 'vitest';
import {
  generatePrivateKeyPem,
  issueServerCertificate,
  makeCaCertificate,
  openIssuer,
  serverLifetimeMs,
} from './authority.ts';
import type { KeyRefusal, RefusedKey } from './enrolment.ts';
import type { AttendedAgent } from './rack-keys.ts';
import { createSessionTrust, type PresentTrust } from './session-trust.ts';

const hourMs = 3_600_000;
const startMs = Date.UTC(2026, 10, 20);
const random = nodeRandom();

let nowMs: number;
let timers: Set<() => void>;
const clock: Clock = {
  nowMs: () => nowMs,
  suspendAwareMs: () => nowMs,
  after: (_delayMs, callback) => {
    timers.add(callback);
    return () => void timers.delete(callback);
  },
};

beforeEach(() => {
  nowMs = startMs;
  timers = new Set();
});

function fireTimers(): void {
  for (const callback of [...timers]) {
    timers.delete(callback);
    callback();
  }
}

function authoritiesOf(agentCertificateMs: number): PresentTrust {
  const now = { certificates: ['one', 'two'], caSha256: 'ab'.repeat(32) };
  return { now, timing: { agentCertificateMs }, existing: async () => [], onChange: () => {} };
}

function contextOf(certificate: PeerCertificate | undefined): CallContext {
  return {
    method: '/x/Y',
    header: () => undefined,
    peerAddress: '127.0.0.1:1',
    peerCertificate: () => certificate,
    signal: new AbortController().signal,
    deadlineMs: Number.POSITIVE_INFINITY,
  };
}

type PeerCertificate = NonNullable<ReturnType<CallContext['peerCertificate']>>;

/** A session whose certificate is valid for 90 days, and the reason of its end. */
async function attendOne() {
  const caKey = generatePrivateKeyPem();
  const ca = await makeCaCertificate(caKey, clock, random, 365 * 24 * hourMs);
  const issuer = await openIssuer(caKey, ca, clock, random);
  const made = await issueServerCertificate(issuer, generatePrivateKeyPem(), ['r1']);
  const certificate = {
    der: new Uint8Array(new X509Certificate(made.toString('pem')).raw),
    fingerprintSha256: '',
    publicKeySha256: 'cd'.repeat(32),
    uris: [],
  };
  const attended = new Set<AttendedAgent>();
  const rackKeys = {
    attend: (one: AttendedAgent) => {
      attended.add(one);
      return () => void attended.delete(one);
    },
  };
  const trust = createSessionTrust({ authorities: authoritiesOf(hourMs), rackKeys, clock });
  const ends: [string, string][] = [];
  const leave = trust.attend(contextOf(certificate), 'r1', (...why) => void ends.push(why));
  return { trust, attended, ends, leave };
}

const refused = (reason: KeyRefusal): RefusedKey<KeyRefusal> => {
  return { kind: 'refused', reason, message: 'why' };
};

test.each([
  ['AGENT_KEY_REVOKED', 'keyRevoked'],
  ['AGENT_KEY_REPLACED', 'keyReplaced'],
  ['KEY_UNKNOWN', 'keyRevoked'],
  ['RACK_UNKNOWN', 'unknownRack'],
] as const)('a key that is refused with %s ends its session as %s', async (reason, word) => {
  const { attended, ends } = await attendOne();
  const [one] = attended;
  expect(one).toMatchObject({ rackId: 'r1', keySha256: 'cd'.repeat(32) });
  one?.end(refused(reason));
  expect(ends).toEqual([[word, 'why']]);
});

test('a session ends with its certificate, not earlier', async () => {
  const { ends } = await attendOne();
  nowMs = startMs + serverLifetimeMs - 1;
  fireTimers();
  expect(ends).toEqual([]);
  nowMs += 1;
  fireTimers();
  expect(ends).toHaveLength(1);
  const [reason, message] = ends[0] ?? [];
  expect(reason).toBe('certificateExpired');
  expect(message).toContain(new Date(startMs + serverLifetimeMs).toISOString());
});

test('a session that was left is ended by nothing any more', async () => {
  const { attended, ends, leave } = await attendOne();
  leave();
  expect(attended.size).toBe(0);
  expect(timers.size).toBe(0);
  nowMs = startMs + 2 * serverLifetimeMs;
  fireTimers();
  expect(ends).toEqual([]);
});

test('a caller without a certificate is not attended', async () => {
  const { trust, attended, leave } = await attendOne();
  leave();
  trust.attend(contextOf(undefined), 'r1', () => {})();
  expect(attended.size).toBe(0);
  expect(timers.size).toBe(0);
});

test.each([
  [hourMs, 180_000],
  [7 * 24 * hourMs, hourMs],
])('certificates that live %d ms are renewed within %d ms of a change', (lifeMs, withinMs) => {
  const rackKeys = { attend: () => () => {} };
  const trust = createSessionTrust({ authorities: authoritiesOf(lifeMs), rackKeys, clock });
  expect(trust.bundle()).toMatchObject({
    certificatePem: ['one', 'two'],
    activeCaSha256: 'ab'.repeat(32),
    renewWithinMs: withinMs,
  });
});
