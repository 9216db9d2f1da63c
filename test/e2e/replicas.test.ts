/**
 * Two control planes on one bucket, each a process of its own: keys and authorities are changed on
 * both or on none, what one revokes ends at the other, and one that is killed meanwhile costs no
 * work.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { ApiFailure, Role, RunPhase, Authority_Stage as Stage } from '@rackwright/messages';
import { serverMissing } from '@rackwright/store/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { executedTwice, troubleIn, until } from './identity-site.ts';
import { type Replica, ReplicaSite } from './replica-site.ts';

const timeout = 600_000;
const timing = {
  agentCertificateMs: 10_000,
  caLifetimeMs: 3_600_000,
  nextStayMs: 0,
  retiredStayMs: 500,
  checkMs: 300,
};
const [first, second, third] = [randomBytes(32), randomBytes(32), randomBytes(32)];
const missing = serverMissing();
let site: ReplicaSite;

beforeAll(async () => {
  if (missing === undefined) site = await ReplicaSite.start(timing, first);
}, timeout);
afterAll(() => site?.stop());
beforeEach((context) => {
  if (missing !== undefined) context.skip(missing);
});

const both = (): readonly Replica[] => [site.a, site.b];
const keyOf = ({ clients }: Replica) => clients.secrets.getSecretsKey({});

/** The keys under which records are, as a replica counts them. */
async function keysInUse(replica: Replica): Promise<string[]> {
  const { uses } = await keyOf(replica);
  return uses.filter(({ records }) => records > 0).map(({ keyId }) => keyId);
}

/** As a page of the console asks. */
function post({ folder, address }: Replica, path: string, cookie: string, body = '{}') {
  const ca = readFileSync(join(folder, 'identity/ca.pem'));
  const headers = { origin: `https://${address}`, 'content-type': 'application/json', cookie };
  return new Promise<IncomingMessage>((resolve, reject) => {
    const asked = request(
      `https://${address}${path}`,
      { method: 'POST', ca, headers },
      (answer) => {
        answer.resume();
        resolve(answer);
      },
    );
    asked.on('error', reject).end(body);
  });
}

async function untilSealedBy(keyId: string): Promise<void> {
  for (const replica of both()) {
    await until(`replica ${replica.name} to seal with ${keyId}`, async () => {
      const now = await keyOf(replica);
      return now.keyId === keyId && (await keysInUse(replica)).join() === keyId ? true : undefined;
    });
  }
}

function createCredential({ clients }: Replica, credentialId: string) {
  const credential = { username: 'admin', password: `password of ${credentialId}` };
  return clients.credentials.createCredential({ credentialId, credential });
}

describe('the key of secrets', () => {
  test('is another one only once the other replica has it, too', { timeout }, async () => {
    const { a, b } = site;
    const before = (await keyOf(a)).keyId;
    a.writeKeys(second, first);
    const asked = await a.clients.secrets.rotateSecretsKey({});
    expect(asked.keyId).toBe(before);
    expect(asked.nextKeyId).not.toBe('');
    const told = await until('the wait for the other one to be told', async () => {
      const { waitsFor } = await keyOf(b);
      return waitsFor.includes('does not have') ? waitsFor : undefined;
    });
    expect(told).toContain(asked.nextKeyId);
    await createCredential(b, 'meanwhile');
    expect(await keysInUse(a)).toEqual([before]);

    b.writeKeys(second, first);
    await untilSealedBy(asked.nextKeyId);
    await createCredential(b, 'later');
    expect(await keysInUse(a)).toEqual([asked.nextKeyId]);
  });

  test('is changed by the other replica when the one that was asked is killed', {
    timeout,
  }, async () => {
    const { a, b } = site;
    for (const replica of both()) replica.writeKeys(third, second);
    // The connection may be one to the process that the test before has killed.
    await until('the replica to answer', () =>
      keysInUse(a).then(
        () => true,
        () => undefined,
      ),
    );
    const { nextKeyId, keyId } = await a.clients.secrets.rotateSecretsKey({});
    await a.end('SIGKILL');
    const wanted = nextKeyId === '' ? keyId : nextKeyId;
    await until('the other one to have sealed all anew', async () => {
      return (await keysInUse(b)).join() === wanted ? true : undefined;
    });
    // It comes back with the new key alone: no record needs another.
    for (const replica of both()) replica.writeKeys(third);
    await a.start();
    await untilSealedBy(wanted);
    await createCredential(a, 'at-last');
    expect(await keysInUse(b)).toEqual([wanted]);
  });
});

test('the authority changes on both replicas under load, though one of them is killed', {
  timeout,
}, async () => {
  const { a, b } = site;
  const away = site.box('r2');
  await away.stop();
  const [old] = (await a.clients.authorities.getAuthorities({})).authorities;
  await a.clients.authorities.rotateAuthority({ reason: 'it was time', requestId: 'rotate' });
  // It waits for the agent whose stream the other replica has.
  const next = await until('the next one to wait', async () => {
    const { authorities } = await b.clients.authorities.getAuthorities({});
    const one = authorities.find(({ stage }) => stage === Stage.NEXT);
    return one?.waits.some(({ rack }) => rack === 'racks/r2') ? one : undefined;
  });
  await until('the agent that is there to trust it', () =>
    site.box('r1').renewal?.trusted().includes(next.sha256) ? true : undefined,
  );
  let isOver = false;
  const working = site.work(['hosts/r1-h1', 'hosts/r2-h1'], () => isOver);
  await away.start();
  await until('the next one to sign', async () => {
    const { authorities } = await a.clients.authorities.getAuthorities({});
    return authorities.find(({ sha256 }) => sha256 === next.sha256)?.stage === Stage.ACTIVE
      ? true
      : undefined;
  });
  await b.end('SIGKILL');
  await b.start();
  for (const replica of both()) {
    await until(`nothing to be left of the old one at ${replica.name}`, async () => {
      // The file that operators are given follows, and trusts both in between.
      await replica.connect();
      const { authorities } = await replica.clients.authorities.getAuthorities({});
      return authorities.some(({ sha256 }) => sha256 === old?.sha256) ? undefined : true;
    });
  }
  isOver = true;
  const cleans = await working;
  expect(cleans.length).toBeGreaterThan(2);
  expect(troubleIn(cleans)).toEqual([]);
  expect(executedTwice(site.boxes)).toEqual([]);
  for (const box of site.boxes) expect(box.renewal?.trusted()).toEqual([next.sha256]);
  // Both ports of each show a certificate that the new one has signed.
  const { bundlePem } = await a.clients.authorities.getAuthorities({});
  for (const replica of both()) await replica.connect(bundlePem);
});

describe('what one replica is told', () => {
  test('ends an operator’s stream at the other, and its token there', { timeout }, async () => {
    const { a, b } = site;
    const expireTime = timestampFromMs(Date.now() + 3_600_000);
    const token = { role: Role.VIEWER, purpose: 'a wall', expireTime };
    const made = await a.clients.access.createToken({ tokenId: 'wall', token });
    const clients = b.clientsOf(made.secret);
    try {
      await until('the other one to know the token', () => clients.racks.listRacks({}));
      const begun = Promise.withResolvers<void>();
      const watching = new Promise<unknown>((resolve) => {
        void (async () => {
          try {
            for await (const _ of clients.hosts.watchHosts({})) begun.resolve();
            resolve('ended without a word');
          } catch (error) {
            resolve(error);
          }
        })();
      });
      // A call that has not begun is refused as of a revoked token.
      await Promise.race([begun.promise, watching]);
      await a.clients.access.deleteToken({ name: 'tokens/wall', reason: 'taken down' });
      const ended = await watching;
      expect(ended).toBeInstanceOf(ApiFailure);
      expect(ended).toMatchObject({ error: { kind: 'unauthenticated', reason: 'TOKEN_ENDED' } });
      await expect(clients.racks.listRacks({})).rejects.toMatchObject({
        error: { kind: 'unauthenticated' },
      });
    } finally {
      clients.close();
    }
  });

  test('is known of a browser at the other, over a restart, until it signs out', {
    timeout,
  }, async () => {
    const { a, b } = site;
    const token = readFileSync(join(a.folder, 'identity/admin.token'), 'utf8').trim();
    const opened = await post(a, '/auth/token', '', JSON.stringify({ token }));
    const cookie = String(opened.headers['set-cookie']).split(';')[0] ?? '';
    const who = async (replica: Replica) =>
      (await post(replica, '/rackwright.v1.AccessService/WhoAmI', cookie)).statusCode;
    expect([opened.statusCode, await who(a), await who(b)]).toEqual([200, 200, 200]);
    await b.end('SIGKILL');
    await b.start();
    expect(await who(b)).toBe(200);
    expect((await post(b, '/auth/sign-out', cookie)).statusCode).toBe(204);
    expect([await who(a), await who(b)]).toEqual([401, 401]);
  });

  test('ends the stream of a revoked agent at the other; the other rack works on', {
    timeout,
  }, async () => {
    const { a, b } = site;
    const name = 'racks/r2';
    await until('the agent to be at the other one', async () => {
      return (await b.clients.racks.getRack({ name })).status?.agentConnected ? true : undefined;
    });
    let isOver = false;
    const working = site.work(['hosts/r1-h1'], () => isOver);
    await a.clients.racks.revokeAgent({ name, reason: 'the box was stolen' });
    const told = await until('the agent to be told', () => site.box('r2').said('keyRevoked')[0]);
    expect(String(told.fields['reason'])).toContain('the box was stolen');
    for (const { clients } of both()) {
      const { status } = await clients.racks.getRack({ name });
      expect(status).toMatchObject({ agentConnected: false, agentKeySha256: '' });
    }
    isOver = true;
    expect(troubleIn(await working)).toEqual([]);
    const { status } = await a.clients.hosts.getHost({ name: 'hosts/r1-h1' });
    expect(status?.run?.phase).toBe(RunPhase.ENDED);
  });
});
