import {
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  X509Certificate,
} from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  ApiFailure,
  type CallContext,
  parseJoinToken,
  publicKeySha256,
  type RackId,
  signCertificateProof,
  userActor,
  store as wire,
} from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { nodeRandom } from '@rackwright/platform/node';
import { quietLog as log } from '@rackwright/platform/testing';
import { openMemoryStore, type StateStore, storeKey } from '@rackwright/store';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { StoreFollower } from '../following/index.ts';
import { countedStore } from '../records/counted.fixture.ts';
import { readRecord, writeRecord } from '../records/index.ts';
import {
  type CertificateRequest,
  createJoinToken,
  type EnrolmentTrust,
  identifyAgent,
  issueCertificate,
  revokeAgent,
} from './agents.ts';
import { generatePrivateKeyPem, makeCaCertificate, openIssuer } from './authority.ts';
import { joinTokensKeptMax } from './enrolment.ts';
import { RackKeys } from './rack-keys.ts';

const minuteMs = 60_000;
const dayMs = 86_400_000;
const caSha256 = 'ab'.repeat(32);
const random = nodeRandom();
let nowMs: number;
let store: StateStore;
let trust: EnrolmentTrust;
let following: StoreFollower;
const clock: Clock = {
  nowMs: () => nowMs,
  suspendAwareMs: () => nowMs,
  after: () => () => undefined,
};

beforeEach(async () => {
  nowMs = Date.UTC(2026, 10, 20);
  store = await openMemoryStore({ random });
  const caKey = generatePrivateKeyPem();
  const ca = await makeCaCertificate(caKey, clock, random, 365 * dayMs);
  const issuer = await openIssuer(caKey, ca, clock, random);
  following = new StoreFollower({ store, clock, log, retryDelayMs: 1_000 });
  const rackKeys = new RackKeys({ store, log, following });
  await rackKeys.start();
  trust = {
    writer: { store, random },
    identity: { issuer, caSha256, agentCertificateMs: 7 * dayMs },
    rackKeys,
  };
  await addRack('r1');
  await addRack('r2');
});

afterEach(async () => {
  following.stop();
  await store.close();
});

async function addRack(id: string): Promise<void> {
  const record = create(wire.RackRecordSchema, { rack: { name: `racks/${id}` } });
  await writeRecord(trust.writer, wire.RackRecordSchema, storeKey('racks', id), record, 'absent');
}

const rackRecord = async (id: string) =>
  (await readRecord(store, wire.RackRecordSchema, storeKey('racks', id)))?.record;

async function tokenFor(rackId: RackId, replaceAgent = false): Promise<string> {
  const { token } = await createJoinToken(trust, { rackId, replaceAgent, by: userActor('p') });
  return parseJoinToken(token)?.secretPart ?? '';
}

const newKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;

function ask(privateKey: KeyObject, joinToken = '', rack = ''): CertificateRequest {
  const publicKey = publicDer(privateKey);
  const nonce = randomBytes(16);
  const signature = signCertificateProof(privateKey, publicKey, nonce);
  return { publicKey, nonce, signature, joinToken, rack };
}

function publicDer(privateKey: KeyObject): Uint8Array {
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  return new Uint8Array(createPublicKey(pem).export({ type: 'spki', format: 'der' }));
}

async function refusalOf(promise: Promise<unknown>): Promise<{ reason: string; message: string }> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof ApiFailure)) throw new Error(`expected a refusal, got ${String(error)}`);
  return { reason: error.error.reason, message: error.error.message };
}

describe('a join token', () => {
  test('gives its agent a certificate of seven days and registers the key', async () => {
    const key = newKey();
    const issued = await issueCertificate(trust, ask(key, await tokenFor('r1')));
    const certificate = new X509Certificate(issued.certificatePem);
    expect(issued.rackId).toBe('r1');
    expect(certificate.subjectAltName).toBe('URI:rackwright://racks/r1');
    expect(certificate.subject).toBe('CN=racks/r1');
    expect(certificate.ca).toBe(false);
    expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2']);
    expect(timestampMs(issued.expireTime)).toBe(nowMs + 7 * 86_400_000);
    const record = await rackRecord('r1');
    expect(record?.rack?.status?.agentKeySha256).toBe(publicKeySha256(createPublicKey(key)));
  });

  test('is stored as a hash only', async () => {
    const secret = (await tokenFor('r1')).split('.')[1] ?? '';
    const found = await store.get(storeKey('racks', 'r1'));
    const value = Buffer.from(found.kind === 'found' ? found.value : []);
    expect(value.includes(secret)).toBe(false);
    expect(value.includes(Buffer.from(secret, 'base64url'))).toBe(false);
  });

  test('answers again when the reply was lost, also after it expired', async () => {
    const key = newKey();
    const token = await tokenFor('r1');
    await issueCertificate(trust, ask(key, token));
    nowMs += 20 * minuteMs;
    expect((await issueCertificate(trust, ask(key, token))).rackId).toBe('r1');
  });

  test('works once', async () => {
    const token = await tokenFor('r1');
    await issueCertificate(trust, ask(newKey(), token));
    const { reason, message } = await refusalOf(issueCertificate(trust, ask(newKey(), token)));
    expect(reason).toBe('TOKEN_USED');
    expect(message).toContain('rackwright rack join-token r1');
  });

  test('a token of two agents at once serves one', async () => {
    const token = await tokenFor('r1');
    const outcomes = await Promise.allSettled(
      Array.from({ length: 5 }, () => issueCertificate(trust, ask(newKey(), token))),
    );
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  test('expires after fifteen minutes', async () => {
    const token = await tokenFor('r1');
    nowMs += 15 * minuteMs;
    const { reason, message } = await refusalOf(issueCertificate(trust, ask(newKey(), token)));
    expect(reason).toBe('TOKEN_EXPIRED');
    expect(message).toContain('2026-11-20T00:15:00.000Z');
    expect(message).toContain('rackwright rack join-token r1');
  });

  test('a token of one rack does not open another', async () => {
    const [, secret] = (await tokenFor('r1')).split('.');
    const moved = await refusalOf(issueCertificate(trust, ask(newKey(), `r2.${secret}`)));
    expect(moved.reason).toBe('TOKEN_UNKNOWN');
    const key = newKey();
    await issueCertificate(trust, ask(key, await tokenFor('r1')));
    const other = await refusalOf(issueCertificate(trust, ask(key, await tokenFor('r2'))));
    expect(other.reason).toBe('TOKEN_OF_OTHER_RACK');
    expect(other.message).toContain('racks/r1');
    const nowhere = await refusalOf(issueCertificate(trust, ask(newKey(), `r9.${secret}`)));
    expect(nowhere.reason).toBe('TOKEN_UNKNOWN');
  });

  test('a token that is cut short is named as the wrong field', async () => {
    const token = await tokenFor('r1');
    const refused = issueCertificate(trust, ask(newKey(), token.slice(0, -3)));
    expect((await refusalOf(refused)).message).toContain('join_token');
  });

  test('is forgotten only behind many newer ones', async () => {
    const token = await tokenFor('r1');
    for (let index = 1; index < joinTokensKeptMax; index += 1) await tokenFor('r1');
    expect((await rackRecord('r1'))?.joinTokens).toHaveLength(joinTokensKeptMax);
    await issueCertificate(trust, ask(newKey(), token));
    await tokenFor('r1', true);
    expect((await rackRecord('r1'))?.joinTokens).toHaveLength(joinTokensKeptMax);
  });

  test('needs its rack to exist', async () => {
    expect((await refusalOf(tokenFor('r9'))).message).toContain('racks/r9');
  });
});

describe('a registered key', () => {
  test('is renewed without a token, at any time', async () => {
    const key = newKey();
    await issueCertificate(trust, ask(key, await tokenFor('r1')));
    nowMs += 30 * 86_400_000;
    expect((await issueCertificate(trust, ask(key))).rackId).toBe('r1');
  });

  test('is needed for a certificate without a token', async () => {
    const { reason, message } = await refusalOf(issueCertificate(trust, ask(newKey())));
    expect(reason).toBe('KEY_UNKNOWN');
    expect(message).toContain('rackwright rack join-token');
  });

  test('is replaced only by a token that permits it', async () => {
    const early = await tokenFor('r1');
    await issueCertificate(trust, ask(newKey(), await tokenFor('r1')));
    const asked = await refusalOf(tokenFor('r1'));
    const used = await refusalOf(issueCertificate(trust, ask(newKey(), early)));
    for (const { reason, message } of [asked, used]) {
      expect(reason).toBe('AGENT_REGISTERED');
      expect(message).toContain('rackwright rack join-token r1 --replace');
    }
    // That did not use up the token either.
    expect((await rackRecord('r1'))?.joinTokens[0]?.usedBySha256).toHaveLength(0);
  });

  test('gives way to the key of a token for replacing it, for ever', async () => {
    const lost = newKey();
    await issueCertificate(trust, ask(lost, await tokenFor('r1')));
    expect(await identifyAgent(store, contextOf(lost, 'r1'))).toBe('r1');
    const next = newKey();
    const token = await tokenFor('r1', true);
    await issueCertificate(trust, ask(next, token));
    const refusals = [
      await refusalOf(issueCertificate(trust, ask(lost))),
      await refusalOf(issueCertificate(trust, ask(lost, '', 'racks/r1'))),
      await refusalOf(identifyAgent(store, contextOf(lost, 'r1'))),
      await refusalOf(issueCertificate(trust, ask(lost, await tokenFor('r1', true)))),
    ];
    for (const { reason, message } of refusals) {
      expect(reason).toBe('AGENT_KEY_REPLACED');
      expect(message).toContain('--new-key');
    }
    expect(await identifyAgent(store, contextOf(next, 'r1'))).toBe('r1');
    const { status } = (await rackRecord('r1'))?.rack ?? {};
    expect(status?.revokedKeys).toBe(1);
    expect(status?.lastRevoked).toMatchObject({ replaced: true, by: userActor('p') });
  });

  test('is replaced only by a token that was made for replacing that very key', async () => {
    await issueCertificate(trust, ask(newKey(), await tokenFor('r1')));
    const stale = await tokenFor('r1', true);
    await issueCertificate(trust, ask(newKey(), await tokenFor('r1', true)));
    expect((await refusalOf(issueCertificate(trust, ask(newKey(), stale)))).reason).toBe(
      'TOKEN_UNKNOWN',
    );
  });

  test('invalidates every join token that was made before it is revoked', async () => {
    const tokens = [await tokenFor('r1'), await tokenFor('r1')];
    await issueCertificate(trust, ask(newKey(), tokens.pop()));
    const [first, second] = [await tokenFor('r1', true), await tokenFor('r1', true)];
    tokens.push(first);
    await issueCertificate(trust, ask(newKey(), second));
    tokens.push(await tokenFor('r1', true));
    await revokeAgent(trust, { rackId: 'r1', by: userActor('p'), reason: 'stolen', requestId: '' });
    for (const token of tokens) {
      const refused = await refusalOf(issueCertificate(trust, ask(newKey(), token)));
      expect(refused.reason).toBe('TOKEN_UNKNOWN');
    }
    expect((await issueCertificate(trust, ask(newKey(), await tokenFor('r1')))).rackId).toBe('r1');
  });

  test('a key that is revoked gets nothing any more, and is told by whom and why', async () => {
    const key = newKey();
    await issueCertificate(trust, ask(key, await tokenFor('r1')));
    const stale = await tokenFor('r1', true);
    const call = { rackId: 'r1', by: userActor('p'), reason: 'stolen', requestId: 'q1' };
    await revokeAgent(trust, call);
    // A repeated request acts once.
    await revokeAgent(trust, call);
    expect((await refusalOf(revokeAgent(trust, { ...call, requestId: 'q2' }))).reason).toBe(
      'NO_AGENT',
    );
    const refusals = [
      await refusalOf(issueCertificate(trust, ask(key))),
      await refusalOf(identifyAgent(store, contextOf(key, 'r1'))),
      await refusalOf(issueCertificate(trust, ask(key, await tokenFor('r1')))),
    ];
    for (const { reason, message } of refusals) {
      expect(reason).toBe('AGENT_KEY_REVOKED');
      expect(message).toContain('by user:p: stolen');
      expect(message).toContain('--new-key');
    }
    expect((await refusalOf(issueCertificate(trust, ask(newKey(), stale)))).reason).toBe(
      'TOKEN_UNKNOWN',
    );
    const record = await rackRecord('r1');
    expect(record?.rack?.status).toMatchObject({ agentKeySha256: '', revokedKeys: 1 });
    // Another agent enrols with an ordinary token.
    expect((await issueCertificate(trust, ask(newKey(), await tokenFor('r1')))).rackId).toBe('r1');
  });

  test('a key that was revoked or replaced is never registered again, anywhere', async () => {
    const key = newKey();
    await issueCertificate(trust, ask(key, await tokenFor('r1')));
    await issueCertificate(trust, ask(newKey(), await tokenFor('r1', true)));
    const revoked = newKey();
    await issueCertificate(trust, ask(revoked, await tokenFor('r2')));
    await revokeAgent(trust, { rackId: 'r2', by: userActor('p'), reason: 'stolen', requestId: '' });
    // A rack that is created again has no memory of its own.
    for (const id of ['r1', 'r2']) {
      const found = await store.get(storeKey('racks', id));
      await store.delete(storeKey('racks', id), found.revision ?? 0);
      await addRack(id);
    }
    for (const id of ['r1', 'r2']) {
      const tried = async (each: KeyObject) =>
        refusalOf(issueCertificate(trust, ask(each, await tokenFor(id))));
      expect((await tried(key)).reason).toBe('AGENT_KEY_REPLACED');
      expect(await tried(revoked)).toMatchObject({
        reason: 'AGENT_KEY_REVOKED',
        message: expect.stringContaining('of racks/r2 was revoked'),
      });
      for (const rack of ['', `racks/${id}`]) {
        const renewed = await refusalOf(issueCertificate(trust, ask(revoked, '', rack)));
        expect(renewed.reason).toBe('AGENT_KEY_REVOKED');
      }
    }
  });

  test('is needed to learn anything: no rack is told from one that does not exist', async () => {
    await issueCertificate(trust, ask(newKey(), await tokenFor('r1')));
    const words = new Set<string>();
    // One with an agent, one without, and none.
    for (const id of ['r1', 'r2', 'r9']) {
      const secret = (await tokenFor('r2')).split('.')[1] ?? '';
      const strange = `${id}.${secret.split('').toReversed().join('')}`;
      for (const request of [ask(newKey(), '', `racks/${id}`), ask(newKey(), strange)]) {
        const { reason, message } = await refusalOf(issueCertificate(trust, request));
        words.add(`${reason} ${message.replaceAll(id, 'rX')}`);
      }
    }
    const reasons = new Set([...words].map((each) => each.split(' ')[0]));
    expect([words.size, reasons]).toEqual([2, new Set(['KEY_UNKNOWN', 'TOKEN_UNKNOWN'])]);
  });

  test('is shown with when it joined, until when it is good, and who signed', async () => {
    const key = newKey();
    const { expireTime } = await issueCertificate(trust, ask(key, await tokenFor('r1')));
    const joined = await rackRecord('r1');
    expect(joined?.rack?.status?.agentJoinTime).toEqual(timestampFromMs(nowMs));
    expect(joined?.rack?.status?.certificateExpireTime).toEqual(expireTime);
    expect(joined?.certificateCaSha256).toBe(caSha256);
    expect(joined?.rack?.updateTime).toEqual(timestampFromMs(nowMs));
    nowMs += dayMs;
    const renewed = await issueCertificate(trust, ask(key, '', 'racks/r1'));
    const { status } = (await rackRecord('r1'))?.rack ?? {};
    expect(status?.certificateExpireTime).toEqual(renewed.expireTime);
    expect(status?.agentJoinTime).toEqual(joined?.rack?.status?.agentJoinTime);
  });

  test('is certified no longer than what signs lives', async () => {
    nowMs = Date.UTC(2026, 10, 20) + 364 * dayMs;
    const { expireTime } = await issueCertificate(trust, ask(newKey(), await tokenFor('r1')));
    expect(timestampMs(expireTime)).toBe(Date.UTC(2026, 10, 20) + 365 * dayMs - 5 * minuteMs);
  });

  test('identifies only its own rack', async () => {
    const key = newKey();
    await issueCertificate(trust, ask(key, await tokenFor('r1')));
    expect((await refusalOf(identifyAgent(store, contextOf(key, 'r2')))).reason).toBe(
      'KEY_UNKNOWN',
    );
    expect((await refusalOf(identifyAgent(store, contextOf(key, 'r9')))).reason).toBe(
      'RACK_UNKNOWN',
    );
    expect((await refusalOf(identifyAgent(store, contextOf(key)))).reason).toBe(
      'AGENT_CERTIFICATE_MISSING',
    );
  });
});

describe('a request for a certificate', () => {
  test('reads and writes the same, however many racks there are', async () => {
    const { store: counted, cost } = countedStore(store);
    const other = { ...trust, writer: { store: counted, random } };
    const costs = async () => {
      const [key, own, others] = [newKey(), await tokenFor('r1', true), await tokenFor('r2', true)];
      const found: object[] = [];
      const asks = async (request: CertificateRequest, answer: string) => {
        Object.assign(cost, { rows: 0, bytes: 0, written: 0 });
        const made = issueCertificate(other, request);
        expect(await made.catch(() => refusalOf(made))).toMatchObject(
          answer === 'r1' ? { rackId: answer } : { reason: answer },
        );
        found.push({ rows: cost.rows, written: cost.written });
      };
      await asks(ask(newKey()), 'KEY_UNKNOWN');
      await asks(ask(key, own), 'r1');
      await asks(ask(key, others), 'TOKEN_OF_OTHER_RACK');
      // Late enough for another certificate.
      nowMs += 60 * minuteMs;
      await asks(ask(key), 'r1');
      return found;
    };
    // From the second call on each replaces another key.
    await costs();
    const few = await costs();
    for (let at = 3; at <= 100; at += 1) await addRack(`r${at}`);
    expect(await costs()).toEqual(few);
    expect(few).toMatchObject([{ written: 0 }, { written: 2 }, { written: 0 }, { written: 1 }]);
  });

  test('a request that is repeated at once gets the same answer, a few times', async () => {
    const key = newKey();
    const token = await tokenFor('r1');
    const first = await issueCertificate(trust, ask(key, token));
    const before = (await store.get(storeKey('racks', 'r1'))) as { revision?: unknown };
    const ways = [ask(key, token), ask(key), ask(key, '', 'racks/r1'), ask(key, token)];
    for (const each of ways) {
      nowMs += 1_000;
      const again = await issueCertificate(trust, each);
      expect(again.certificatePem).toBe(first.certificatePem);
      expect(again.issueTime).toEqual(timestampFromMs(nowMs));
    }
    expect((await refusalOf(issueCertificate(trust, ask(key)))).reason).toBe(
      'CERTIFICATE_JUST_ISSUED',
    );
    expect((await store.get(storeKey('racks', 'r1'))) as unknown).toEqual(before);
    // With another signing authority, or after an hour: there is a new one.
    const other = {
      ...trust,
      identity: Object.assign(trust.identity, { caSha256: 'cd'.repeat(32) }),
    };
    const moved = await issueCertificate(other, ask(key));
    expect(moved.certificatePem).not.toBe(first.certificatePem);
    nowMs += 60 * minuteMs;
    expect((await issueCertificate(trust, ask(key))).certificatePem).not.toBe(moved.certificatePem);
  });

  test('a request of a revoked key is not answered with what it got last', async () => {
    const key = newKey();
    await issueCertificate(trust, ask(key, await tokenFor('r1')));
    await revokeAgent(trust, { rackId: 'r1', by: userActor('p'), reason: 'stolen', requestId: '' });
    expect((await refusalOf(issueCertificate(trust, ask(key)))).reason).toBe('AGENT_KEY_REVOKED');
  });

  test('a request without proof of the private key is refused', async () => {
    const token = await tokenFor('r1');
    const stolen = { ...ask(newKey(), token), publicKey: publicDer(newKey()) };
    expect((await refusalOf(issueCertificate(trust, stolen))).message).toContain('signature');
  });

  test('hears all that is wrong with its fields together', async () => {
    const wrong = { ...ask(newKey()), publicKey: new Uint8Array(3), nonce: new Uint8Array(3) };
    const { message } = await refusalOf(issueCertificate(trust, wrong));
    expect(message).toContain('2 fields');
  });
});

function contextOf(key: KeyObject, rackId?: RackId): CallContext {
  const certificate = {
    der: new Uint8Array(),
    fingerprintSha256: '',
    publicKeySha256: publicKeySha256(createPublicKey(key)),
    uris: [`rackwright://racks/${rackId}`],
  };
  return {
    method: '/x/Y',
    header: () => undefined,
    peerAddress: '127.0.0.1:1',
    peerCertificate: () => (rackId === undefined ? undefined : certificate),
    signal: new AbortController().signal,
    deadlineMs: Number.POSITIVE_INFINITY,
  };
}
