import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { type AuditRecord, Role, store as wire } from '@rackwright/messages';
import { nodeClock } from '@rackwright/platform/node';
import { operatorClients } from '@rackwright/rpc';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { tokenFor } from '../../services/access.fixture.ts';
import {
  addSurroundings,
  type Fixture,
  failureOf,
  specOf,
  startFixture,
} from '../../services/rpc.fixture.ts';

let fixture: Fixture;

beforeAll(async () => {
  fixture = await startFixture();
  await addSurroundings(fixture);
  await fixture.credentials.updateCredential({
    credential: { name: 'credentials/bmc', bmcNetworks: ['192.0.2.0/24'] },
    updateMask: { paths: ['bmc_networks'] },
  });
});

afterAll(() => fixture.stop());

const as = (token: string) => operatorClients(fixture.channel, token);
const inMs = (ms: number) => timestampFromMs(nodeClock().nowMs() + ms);
const dayMs = 86_400_000;

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => nodeClock().after(ms, resolve));
}

async function findAudit(search: object): Promise<AuditRecord[]> {
  for (let round = 0; round < 100; round += 1) {
    const { records } = await fixture.audit.listAuditRecords(search);
    if (records.length > 0) return records;
    await wait(10);
  }
  return [];
}

test('a caller is told the methods that its role and scope carry, and no others', async () => {
  const expireTime = inMs(dayMs);
  const scope = { racks: ['racks/r1'] };
  const token = { role: Role.VIEWER, expireTime, scope, purpose: 'a wall' };
  const made = await fixture.access.createToken({ tokenId: 'wall', token });
  const { methods } = await as(made.secret).access.whoAmI({});
  expect(methods).toContain('rackwright.v1.HostService/ListHosts');
  expect(methods).not.toContain('rackwright.v1.HostService/CleanHost');
  expect(methods).not.toContain('rackwright.v1.AccessService/ListTokens');
  const all = (await fixture.access.whoAmI({})).methods;
  expect(all).toContain('rackwright.v1.AccessService/DeleteToken');
  expect(all).toEqual([...all].sort());
});

test('a token is shown once, let in, named in timelines, and never read again', async () => {
  const expireTime = inMs(30 * dayMs);
  const token = { role: Role.OPERATOR, expireTime, purpose: 'the build farm' };
  const made = await fixture.access.createToken({ tokenId: 'ci', token });
  expect(made.secret).toMatch(/^rwo1\.ci\.[A-Za-z0-9_-]{43}$/);
  expect(made.token).toMatchObject({ name: 'tokens/ci', createdBy: 'user:admin' });
  const { hosts, access } = as(made.secret);
  await hosts.createHost({ hostId: 'h1', host: { spec: specOf(1) } });
  const { revisions } = await hosts.listHostRevisions({ name: 'hosts/h1' });
  expect(revisions.at(-1)).toMatchObject({ actor: 'token:ci', cause: 'created' });
  expect(await access.whoAmI({})).toMatchObject({
    actor: 'token:ci',
    role: Role.OPERATOR,
    token: 'tokens/ci',
    expireTime,
  });
  const secret = made.secret.slice('rwo1.ci.'.length);
  const { entries } = await fixture.store.list('');
  for (const { value } of entries) expect(Buffer.from(value).includes(secret)).toBe(false);
  expect(JSON.stringify(fixture.lines)).not.toContain(secret);
  expect(JSON.stringify(await fixture.access.getToken({ name: 'tokens/ci' }), text)).not.toContain(
    secret,
  );
});

const text = (_key: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value);

test('sign-ins, hand-outs and acts stand in the audit stream, under the token’s name', async () => {
  const secret = await tokenFor(fixture, 'heard', Role.VIEWER);
  await as(secret).hosts.listHosts({});
  await as(secret).hosts.listHosts({});
  expect(await findAudit({ actor: 'token:heard', action: 'signIn' })).toMatchObject([
    {
      kind: 'signIn',
      outcome: 'ok',
      resource: 'tokens/heard',
      message: expect.stringContaining('viewer'),
    },
  ]);
  const given = await findAudit({ resource: 'tokens/heard', action: 'CreateToken' });
  expect(given.map(({ kind }) => kind).toSorted()).toEqual(['request', 'secretSent']);
  await failureOf(as(secret).hosts.cleanHost({ name: 'hosts/h1' }));
  expect(await findAudit({ actor: 'token:heard', action: 'CleanHost' })).toMatchObject([
    { kind: 'refusal', outcome: 'PERMISSION_DENIED', resource: 'hosts/h1' },
  ]);
});

test('too small a role is told which one is needed, and who gives it', async () => {
  const viewer = as(await tokenFor(fixture, 'small', Role.VIEWER));
  const refused = await failureOf(viewer.hosts.cleanHost({ name: 'hosts/h1' }));
  expect(refused).toMatchObject({ kind: 'permissionDenied', reason: 'ROLE_TOO_SMALL' });
  expect(refused.message).toContain('HostService.CleanHost needs the role operator');
  expect(refused.message).toContain('token:small has viewer');
  expect(refused.message).toContain('Ask an administrator');
});

test('a request that gives up the proof of erasure needs an administrator', async () => {
  const operator = as(await tokenFor(fixture, 'hand', Role.OPERATOR));
  const name = 'hosts/h1';
  const force = await failureOf(operator.hosts.deleteHost({ name, mode: 2, reason: 'now' }));
  expect(force).toMatchObject({ reason: 'ROLE_TOO_SMALL', metadata: { needed: 'admin' } });
  const vouch = { name, hold: 'x', reason: 'unplugged', physicallyDisconnected: true };
  expect(await failureOf(operator.hosts.releaseHold(vouch))).toMatchObject({
    reason: 'ROLE_TOO_SMALL',
  });
  const planned = operator.plans.planRun({
    parent: name,
    run: { case: 'delete', value: { mode: 2 } },
  });
  expect(await failureOf(planned)).toMatchObject({ reason: 'ROLE_TOO_SMALL' });
});

test('each token that is not let in is told why, and what to do', async () => {
  const { store } = fixture;
  const secret = await tokenFor(fixture, 'spent', Role.VIEWER);
  const reasonOf = async (token: string) => {
    const failure = await failureOf(as(token).hosts.listHosts({}));
    expect(failure.kind).toBe('unauthenticated');
    expect(failure.message).toMatch(/rackwright token create|file/);
    return failure.reason;
  };
  expect(await reasonOf('rwo1.spent')).toBe('TOKEN_WRONG');
  expect(await reasonOf(`${secret.slice(0, -1)}-`)).toBe('TOKEN_WRONG');
  expect(await reasonOf(secret.replace('spent', 'other'))).toBe('TOKEN_WRONG');
  expect(await reasonOf(secret.replace('spent', 'admin'))).toBe('TOKEN_WRONG');
  expect(await reasonOf('rwa1.abc')).toBe('TOKEN_WRONG');
  await fixture.access.deleteToken({ name: 'tokens/spent', reason: 'left' });
  expect(await reasonOf(secret)).toBe('TOKEN_REVOKED');
  // Only a caller with the secret learns that the token existed.
  expect(await reasonOf(`${secret.slice(0, -1)}-`)).toBe('TOKEN_WRONG');
  const expireTime = inMs(300);
  const short = await fixture.access.createToken({
    tokenId: 'short',
    token: { role: Role.VIEWER, expireTime },
  });
  await as(short.secret).hosts.listHosts({});
  await wait(Math.max(0, timestampMs(expireTime) - nodeClock().nowMs()) + 20);
  expect(await reasonOf(short.secret)).toBe('TOKEN_EXPIRED');
  expect((await store.get('tokens.short')).kind).toBe('found');
});

test('revoking ends the streams that are open, and no other’s', async () => {
  const [gone, stays] = [
    await tokenFor(fixture, 'gone', Role.VIEWER),
    await tokenFor(fixture, 'stays', Role.VIEWER),
  ];
  const open = async (token: string) => {
    const stream = as(token).hosts.watchHosts({})[Symbol.asyncIterator]();
    await stream.next();
    return stream;
  };
  const [ending, staying] = [await open(gone), await open(stays)];
  const drain = async () => {
    for (;;) if ((await ending.next()).done === true) return;
  };
  const failure = failureOf(drain());
  await fixture.access.deleteToken({ name: 'tokens/gone' });
  expect(await failure).toMatchObject({
    kind: 'unauthenticated',
    reason: 'TOKEN_ENDED',
  });
  await fixture.hosts.createHost({ hostId: 'h2', host: { spec: specOf(2) } });
  for (;;) {
    const { value } = await staying.next();
    if (value?.host?.name === 'hosts/h2') break;
  }
  await staying.return?.();
});

test('a stream ends when its token expires', async () => {
  // On a busy machine a token may expire before its stream has begun: such a stream proves nothing.
  for (let lifeMs = 400; ; lifeMs *= 2) {
    const token = { role: Role.VIEWER, expireTime: inMs(lifeMs) };
    const { secret } = await fixture.access.createToken({ tokenId: `for-${lifeMs}-ms`, token });
    let heard = 0;
    const watching = (async () => {
      for await (const each of as(secret).racks.watchRacks({})) if (each !== undefined) heard += 1;
    })();
    const failure = await failureOf(watching);
    if (heard === 0 && lifeMs < 20_000) continue;
    expect(failure).toMatchObject({ reason: 'TOKEN_ENDED' });
    return;
  }
});

test('a wrong token is refused with all its wrong fields', async () => {
  const token = {
    role: 9 as Role,
    expireTime: inMs(401 * dayMs),
    purpose: 'a\nb',
    scope: { racks: ['racks/none', 'r1'], pools: [''] },
  };
  const failure = await failureOf(fixture.access.createToken({ tokenId: 'admin', token }));
  const violations = 'violations' in failure ? failure.violations : [];
  expect(violations.map(({ field }) => field)).toEqual([
    'token_id',
    'token.role',
    'token.expire_time',
    'token.purpose',
    'token.scope.racks[0]',
    'token.scope.racks[1]',
    'token.scope.pools[0]',
  ]);
  const none = await failureOf(fixture.access.createToken({ tokenId: 'x' }));
  expect(none.message).toContain('fields are invalid');
});

test('a request that comes again makes no second token, and says so', async () => {
  const token = { role: Role.VIEWER, expireTime: inMs(dayMs) };
  const request = { tokenId: 'twice', token, requestId: 'once' };
  const { secret } = await fixture.access.createToken(request);
  const again = await failureOf(fixture.access.createToken(request));
  expect(again).toMatchObject({ kind: 'alreadyExists' });
  expect(again.message).toContain('by this very request; its secret was told once');
  expect((await as(secret).access.whoAmI({})).actor).toBe('token:twice');
  await fixture.access.deleteToken({ name: 'tokens/twice' });
  const next = await fixture.access.createToken({ ...request, requestId: 'anew' });
  expect(await failureOf(as(secret).access.whoAmI({}))).toMatchObject({ reason: 'TOKEN_WRONG' });
  expect((await as(next.secret).access.whoAmI({})).actor).toBe('token:twice');
});

test('the list has the first token and says what is to be seen to', async () => {
  const { tokens } = await fixture.access.listTokens({});
  const first = tokens.find(({ name }) => name === 'tokens/admin');
  expect(first?.warning).toContain('never expires');
  expect(first?.lastUsedTime).toBeDefined();
  expect(tokens.map(({ name }) => name)).not.toContain('tokens/gone');
  const page = await fixture.access.listTokens({ pageSize: 2 });
  const rest = await fixture.access.listTokens({ pageToken: page.nextPageToken });
  expect([...page.tokens, ...rest.tokens].map(({ name }) => name)).toEqual(
    tokens.map(({ name }) => name),
  );
});

test('the first token goes once another can make tokens, and not before', async () => {
  const name = 'tokens/admin';
  const limited = { racks: ['racks/r1'] };
  await tokenFor(fixture, 'part', Role.ADMIN, limited);
  expect(await failureOf(fixture.access.deleteToken({ name }))).toMatchObject({
    reason: 'LAST_ADMIN',
  });
  const secret = await tokenFor(fixture, 'chief', Role.ADMIN);
  const chief = as(secret);
  await chief.access.deleteToken({ name, reason: 'tokens for everybody now' });
  expect(await failureOf(fixture.hosts.listHosts({}))).toMatchObject({ reason: 'TOKEN_REVOKED' });
  expect(await failureOf(chief.access.deleteToken({ name: 'tokens/chief' }))).toMatchObject({
    reason: 'LAST_ADMIN',
  });
  expect((await chief.hosts.listHosts({})).hosts).toHaveLength(2);
});

test('one of the administrators who delete each other’s tokens at once stays', async () => {
  const own = await startFixture();
  const ids = ['one', 'two', 'three'];
  const all = await Promise.all(
    ids.map(async (id) => ({
      id,
      client: operatorClients(own.channel, await tokenFor(own, id, Role.ADMIN)),
    })),
  );
  await all[0]?.client.access.deleteToken({ name: 'tokens/admin', reason: 'not needed' });
  // Each deletes the next one's token.
  const outcomes = await Promise.allSettled(
    all.map(({ client }, index) => {
      const name = `tokens/${ids[(index + 1) % ids.length]}`;
      return client.access.deleteToken({ name, reason: 'a quarrel' });
    }),
  );
  const left = await Promise.allSettled(all.map(({ client }) => client.access.listTokens({})));
  expect(left.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
  await own.stop();
});

describe('deletions of administrators’ tokens', () => {
  let own: Fixture;
  const key = 'access.deletions';
  const deletionsSchema = wire.TokenDeletionsRecordSchema;
  const announced = async (
    deletions: MessageInitShape<typeof wire.TokenDeletionRecordSchema>[],
  ) => {
    const before = await own.store.get(key);
    const expected = before.kind === 'found' ? before.revision : 'absent';
    const bytes = toBinary(deletionsSchema, create(deletionsSchema, { deletions }));
    expect(await own.store.put(key, bytes, expected)).toMatchObject({ kind: 'ok' });
  };
  const remove = (id: string) => own.access.deleteToken({ name: `tokens/${id}` });

  beforeEach(async () => {
    own = await startFixture();
  });

  afterEach(() => own.stop());

  test('deletions that did not end are named, with the time that they count', async () => {
    const admins = operatorClients(own.channel, await tokenFor(own, 'one', Role.ADMIN));
    await tokenFor(own, 'two', Role.ADMIN);
    await remove('admin');
    const kept = await own.store.get('tokens.two');
    if (kept.kind !== 'found') throw new Error('a token was made');
    const { secretSha256 } = fromBinary(wire.TokenRecordSchema, kept.value);
    const time = timestampFromMs(nodeClock().nowMs() - 60_000);
    await announced([{ token: 'tokens/two', secretSha256, time }]);
    const { access } = admins;
    const refused = await failureOf(access.deleteToken({ name: 'tokens/one' }));
    expect(refused).toMatchObject({ kind: 'failedPrecondition', reason: 'LAST_ADMIN' });
    const untilTime = new Date(timestampMs(time) + 600_000).toISOString();
    expect(refused.message).toContain('deletion of tokens/two has begun');
    expect(refused.message).toContain(`counts until ${untilTime}`);
    await access.deleteToken({ name: 'tokens/two' });
  });

  test('are many at once, and each comes to its end', async () => {
    const ids = Array.from({ length: 20 }, (_, n) => `a${n}`);
    for (const id of ids) await tokenFor(own, id, Role.ADMIN);
    const deleted = await Promise.all(ids.map(remove));
    expect(deleted).toHaveLength(ids.length);
    await tokenFor(own, 'last', Role.ADMIN);
    // A finished deletion is not kept in addition to its token's record.
    await remove('last');
    const kept = await own.store.get(key);
    if (kept.kind !== 'found') throw new Error('it was announced');
    const { deletions } = fromBinary(deletionsSchema, kept.value);
    expect(deletions.map(({ token }) => token)).toEqual(['tokens/last']);
  });

  test('are refused while the maximum number of them is unfinished', async () => {
    await tokenFor(own, 'one', Role.ADMIN);
    const time = timestampFromMs(nodeClock().nowMs());
    const entries = Array.from({ length: 256 }, (_, n) => ({ token: `tokens/t${n}`, time }));
    await announced(entries);
    const refused = await failureOf(remove('one'));
    expect(refused).toMatchObject({ kind: 'unavailable', reason: 'DELETIONS_BUSY' });
    await announced(entries.slice(1));
    await remove('one');
  });
});
