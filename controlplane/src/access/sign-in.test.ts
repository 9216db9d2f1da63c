import { createHash } from 'node:crypto';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { ApiFailure, asTokenId, type CallContext, Role, store as wire } from '@rackwright/messages';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { quietLog as log } from '@rackwright/platform/testing';
import { openMemoryStore, type StateStore } from '@rackwright/store';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { StoreFollower } from '../following/index.ts';
import type { Principal } from './principal.ts';
import { createSignIn, type SignIn } from './sign-in.ts';
import { makeToken } from './token.ts';
import { rememberedMs, revokedFirstKey, TokenBook, tokenKey } from './token-book.ts';

const first = `rwa1.${'x'.repeat(43)}`;
const hashOf = (token: string) => createHash('sha256').update(token).digest('hex');
const firstTokenSha256 = hashOf(first);
const quiet = () => undefined;
const dayMs = 86_400_000;

let store: StateStore;
let books: TokenBook[];
let stops: (() => void)[];
let shiftMs: number;
let reads: number;

beforeEach(async () => {
  store = await openMemoryStore({ random: nodeRandom() });
  books = [];
  stops = [];
  shiftMs = 0;
  reads = 0;
});

afterEach(async () => {
  for (const book of books) book.stop();
  for (const stop of stops) stop();
  await store.close();
});

/** One of several control planes on the store. */
async function replica(
  own = first,
): Promise<{ readonly book: TokenBook; readonly signIn: SignIn }> {
  const firstTokenSha256 = hashOf(own);
  const base = nodeClock();
  const clock = {
    nowMs: () => base.nowMs() + shiftMs,
    after: base.after.bind(base),
  } as never;
  const counted = new Proxy(store, {
    get: (target, name) => {
      if (name === 'get') reads += 1;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const following = new StoreFollower({ store, clock, log, retryDelayMs: 10 });
  stops.push(() => following.stop());
  const book = new TokenBook({
    store: counted,
    following,
    clock,
    random: nodeRandom(),
    log,
    firstTokenSha256,
  });
  books.push(book);
  await book.start();
  const signIn = createSignIn({
    tokens: book,
    firstTokenSha256,
    verifier: undefined,
    onSignIn: quiet,
  });
  return { book, signIn };
}

async function putToken(tokenId: string, more: object = {}): Promise<string> {
  const { text, secretSha256 } = makeToken(asTokenId(tokenId), nodeRandom());
  const expireTime = timestampFromMs(nodeClock().nowMs() + dayMs);
  const token = { name: `tokens/${tokenId}`, role: Role.VIEWER, expireTime };
  const record = create(wire.TokenRecordSchema, { token, secretSha256, ...more });
  await store.put(tokenKey(asTokenId(tokenId)), toBinary(wire.TokenRecordSchema, record), 'absent');
  return text;
}

async function revoke(tokenId: string): Promise<void> {
  const found = await store.get(tokenKey(asTokenId(tokenId)));
  if (found.kind === 'absent') throw new Error('no token');

  const record = fromBinary(wire.TokenRecordSchema, found.value);
  record.revokeTime = timestampFromMs(nodeClock().nowMs());
  const value = toBinary(wire.TokenRecordSchema, record);
  const written = await store.put(tokenKey(asTokenId(tokenId)), value, found.revision);
  expect(written.kind).toBe('ok');
}

function callWith(authorization: string | undefined): CallContext {
  return {
    method: '/rackwright.v1.HostService/GetHost',
    header: (name) => (name === 'authorization' ? authorization : undefined),
    peerAddress: '192.0.2.1:1',
    peerCertificate: () => undefined,
    signal: new AbortController().signal,
    deadlineMs: Number.POSITIVE_INFINITY,
  };
}

async function signInAs({ signIn }: { signIn: SignIn }, header?: string): Promise<Principal> {
  const context = callWith(header);
  await signIn.guard(context);
  return signIn.principalOf(context);
}

async function reasonOf(call: Promise<unknown>): Promise<string> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof ApiFailure) return error.error.reason;
  throw new Error(`expected an ApiFailure, got ${String(error)}`);
}

test('a header signs in by a whole token alone; any other header is refused', async () => {
  const here = await replica();
  expect((await signInAs(here, `Bearer ${first}`)).actor).toBe('user:admin');
  expect((await signInAs(here, `bearer  ${first}`)).role).toBe(Role.ADMIN);
  expect(await reasonOf(signInAs(here))).toBe('TOKEN_MISSING');
  for (const header of [
    first,
    `Basic ${first}`,
    `Bearer ${first}x`,
    'Bearer ',
    'Bearer rwo1.admin.x',
    `Bearer rwo1.admin.${'x'.repeat(43)}`,
    `Bearer rwo1.a/b.${'x'.repeat(43)}`,
    `Bearer ${'a'.repeat(20_000)}`,
    'Bearer a.b.c',
  ]) {
    expect(await reasonOf(signInAs(here, header))).toBe('TOKEN_WRONG');
  }
});

test('a caller with many spellings of a token, or served by many, is one caller', async () => {
  const here = await replica();
  const there = await replica();
  const token = await putToken('one');
  const other = await putToken('two');
  const named = ({ signIn }: { signIn: SignIn }, header: string) => signIn.guard(callWith(header));
  const name = await named(here, `Bearer ${token}`);
  expect(name).toEqual(expect.any(String));
  for (const spelled of [`bEARER ${token}`, `Bearer   ${token}`, `Bearer ${token} `]) {
    expect(await named(here, spelled)).toBe(name);
  }
  expect(await named(there, `Bearer ${token}`)).toBe(name);
  expect(await named(here, `Bearer ${other}`)).not.toBe(name);
  expect(await named(here, `Bearer ${first}`)).not.toBe(name);
});

test('a caller is known only once the guard has let the call in', async () => {
  const { signIn } = await replica();
  expect(() => signIn.principalOf(callWith(`Bearer ${first}`))).toThrow('No token was sent');
});

test('a token that one replica revokes is refused by the others, and its streams end', async () => {
  const [here, there] = [await replica(), await replica()];
  const text = `Bearer ${await putToken('shared')}`;
  const principal = await signInAs(here, text);
  expect((await signInAs(there, text)).actor).toBe('token:shared');
  const ended = new Promise<void>((resolve) => here.signIn.onEnd(principal, resolve));
  await revoke('shared');
  expect(await reasonOf(signInAs(there, text))).toBe('TOKEN_REVOKED');
  expect(await reasonOf(signInAs(here, text))).toBe('TOKEN_REVOKED');
  await ended;
  // A credential that ends between the check and the opening of its stream is not overlooked.
  let isOver = false;
  here.signIn.onEnd(principal, () => (isOver = true));
  expect(isOver).toBe(true);
});

test('a token whose record becomes unreadable is refused, and its streams end', async () => {
  const here = await replica();
  const text = `Bearer ${await putToken('broken')}`;
  const principal = await signInAs(here, text);
  const ended = new Promise<void>((resolve) => here.signIn.onEnd(principal, resolve));
  const found = await store.get(tokenKey(asTokenId('broken')));
  await store.put(tokenKey(asTokenId('broken')), Uint8Array.of(255, 255), found.revision ?? 0);
  await ended;
  await expect(signInAs(here, text)).rejects.toThrow();
  // Others come and go as before.
  expect((await signInAs(here, `Bearer ${await putToken('later')}`)).actor).toBe('token:later');
});

test('a token whose name was given to another ends with it', async () => {
  const here = await replica();
  const principal = await signInAs(here, `Bearer ${await putToken('same')}`);
  const ended = new Promise<void>((resolve) => here.signIn.onEnd(principal, resolve));
  await revoke('same');
  await ended;
  const found = await store.get(tokenKey(asTokenId('same')));
  await store.delete(tokenKey(asTokenId('same')), found.revision ?? 0);
  const text = await putToken('same');
  expect((await signInAs(here, `Bearer ${text}`)).actor).toBe('token:same');
});

test('guessing ids costs the store little, and keeps out nobody who has a token', async () => {
  const here = await replica();
  const text = `Bearer ${await putToken('mine')}`;
  await signInAs(here, text);
  reads = 0;
  const guesses = Array.from({ length: 2_000 }, (_, index) =>
    reasonOf(signInAs(here, `Bearer rwo1.g${index}.${'y'.repeat(43)}`)),
  );
  // Without a read of the store no refusal is final.
  expect(new Set(await Promise.all(guesses))).toEqual(new Set(['TOKEN_WRONG', 'SIGN_IN_BUSY']));
  // All within a second or, across its boundary, two.
  expect(reads).toBeLessThanOrEqual(150);
  for (let round = 0; round < 100; round += 1) {
    expect((await signInAs(here, text)).actor).toBe('token:mine');
  }
});

test('a secret that is known is a guess under any other id', async () => {
  const here = await replica();
  const text = await putToken('mine');
  await signInAs(here, `Bearer ${text}`);
  reads = 0;
  const guesses = Array.from({ length: 1_000 }, (_, index) =>
    reasonOf(signInAs(here, `Bearer ${text.replace('mine', `g${index}`)}`)),
  );
  expect(new Set(await Promise.all(guesses))).toEqual(new Set(['TOKEN_WRONG', 'SIGN_IN_BUSY']));
  expect(reads).toBeLessThanOrEqual(150);
  expect((await signInAs(here, `Bearer ${text}`)).actor).toBe('token:mine');
});

test('a token that was just made is not called wrong while others guess', async () => {
  const here = await replica();
  const guess = () => reasonOf(signInAs(here, `Bearer rwo1.guess.${'y'.repeat(43)}`));
  const guesses = await Promise.all(Array.from({ length: 200 }, guess));
  expect(guesses.at(-1)).toBe('SIGN_IN_BUSY');
  const text = `Bearer ${await putToken('new')}`;
  // Until the watch has reported it, or the second is over.
  const seen = new Set<string>();
  for (let round = 0; round < 500 && !seen.has('let in'); round += 1) {
    const call = signInAs(here, text).then(() => 'let in');
    seen.add(await call.catch(() => reasonOf(call)));
    await new Promise<void>((resolve) => nodeClock().after(2, resolve));
  }
  expect(seen.has('let in')).toBe(true);
  seen.delete('let in');
  expect([...seen].filter((each) => each !== 'SIGN_IN_BUSY')).toEqual([]);
});

test('a token that was there before the start is known when others guess', async () => {
  const text = `Bearer ${await putToken('old')}`;
  const here = await replica();
  const guess = () => reasonOf(signInAs(here, `Bearer rwo1.guess.${'y'.repeat(43)}`));
  await Promise.all(Array.from({ length: 200 }, guess));
  expect((await signInAs(here, text)).actor).toBe('token:old');
});

test('a stream that opens after its token has given way to another of its name ends', async () => {
  const here = await replica();
  const principal = await signInAs(here, `Bearer ${await putToken('same')}`);
  const found = await store.get(tokenKey(asTokenId('same')));
  await store.delete(tokenKey(asTokenId('same')), found.revision ?? 0);
  const text = await putToken('same');
  await signInAs(here, `Bearer ${text}`);
  await new Promise<void>((resolve) => here.signIn.onEnd(principal, resolve));
});

test('the last use is written once an hour, whoever calls how often', async () => {
  const here = await replica();
  const text = `Bearer ${await putToken('busy')}`;
  const revisions = async () => (await store.history(tokenKey(asTokenId('busy')))).length;
  const settled = async (count: number) => {
    for (let round = 0; round < 200 && (await revisions()) < count; round += 1) {
      await new Promise<void>((resolve) => nodeClock().after(5, resolve));
    }
    return revisions();
  };
  for (let round = 0; round < 50; round += 1) await signInAs(here, text);
  expect(await settled(2)).toBe(2);
  shiftMs += 3_600_001;
  for (let round = 0; round < 50; round += 1) await signInAs(here, text);
  expect(await settled(3)).toBe(3);
});

test('a first token that was revoked stays so, whatever first tokens come after it', async () => {
  const here = await replica();
  await signInAs(here, `Bearer ${first}`);
  const gone = create(wire.TokenRecordSchema, {
    token: { name: 'tokens/admin' },
    revokeTime: timestampFromMs(nodeClock().nowMs()),
  });
  const key = revokedFirstKey(firstTokenSha256);
  await store.put(key, toBinary(wire.TokenRecordSchema, gone), 'absent');
  expect(await reasonOf(signInAs(here, `Bearer ${first}`))).toBe('TOKEN_REVOKED');
  const other = await replica('rwa1.another');
  expect((await signInAs(other, 'Bearer rwa1.another')).actor).toBe('user:admin');
  expect(await reasonOf(signInAs(here, `Bearer ${first}`))).toBe('TOKEN_REVOKED');
});

test('ended tokens are deleted once no caller needs a reason, and no other tokens', async () => {
  const here = await replica();
  await putToken('lives', { token: { name: 'tokens/lives', expireTime: timestampFromMs(9e15) } });
  await putToken('expired');
  await putToken('revoked', { revokeTime: timestampFromMs(nodeClock().nowMs()) });
  await signInAs(here, `Bearer ${first}`);
  await here.book.sweep();
  expect((await store.list('tokens')).entries.length).toBeGreaterThanOrEqual(3);
  shiftMs += rememberedMs + 1;
  await here.book.sweep();
  expect((await store.get(tokenKey(asTokenId('revoked')))).kind).toBe('absent');
  expect((await store.get(tokenKey(asTokenId('expired')))).kind).toBe('found');
  shiftMs += dayMs;
  await here.book.sweep();
  expect((await store.get(tokenKey(asTokenId('expired')))).kind).toBe('absent');
  expect((await store.get(tokenKey(asTokenId('lives')))).kind).toBe('found');
});

test('a store that does not answer lets nobody in', async () => {
  const here = await replica();
  const text = await putToken('later');
  await store.close();
  expect(await reasonOf(signInAs(here, `Bearer ${text}`))).toBe('STORE_UNAVAILABLE');
  expect(await reasonOf(signInAs(here, `Bearer ${first}`))).toBe('STORE_UNAVAILABLE');
});
