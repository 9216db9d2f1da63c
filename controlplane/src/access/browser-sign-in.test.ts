import { create } from '@bufbuild/protobuf';
import { ApiFailure, type CallContext, store as wire } from '@rackwright/messages';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { expect, test } from 'vitest';
import { BrowserSignIn, beginningCookie, exchangesMax } from './browser-sign-in.ts';

const endpoints = {
  authorization: 'https://idp.example/authorize',
  token: 'https://idp.example/token',
};

function signInWith(send: () => Promise<unknown>): BrowserSignIn {
  return new BrowserSignIn({
    config: { issuer: 'https://idp.example' },
    browser: { clientId: 'console', scopes: ['openid'] },
    clientSecret: async () => undefined,
    keys: { endpoints: async () => endpoints },
    web: { send },
    clock: nodeClock(),
    random: nodeRandom(),
    secrets: {
      sealBytes: (_purpose: string, plain: Uint8Array) =>
        create(wire.SealedValueSchema, { ciphertext: plain }),
      openBytes: (_purpose: string, { ciphertext }: wire.SealedValue) => ciphertext,
    },
  } as never);
}

function callWith(cookie: string): CallContext {
  const headers: Readonly<Record<string, string>> = {
    ...{ host: 'cp.example:7440', cookie: `${beginningCookie}=${cookie}` },
  };
  return { header: (name: string) => headers[name] } as never;
}

test('a bounded number of returned codes is exchanged at a time', async () => {
  let asked = 0;
  const { promise, resolve } = Promise.withResolvers<{ kind: string }>();
  const signIn = signInWith(() => {
    asked += 1;
    return promise;
  });
  const { location, cookie } = await signIn.begin(callWith(''), '/hosts');
  const state = new URL(location).searchParams.get('state') ?? '';
  const end = (code: string) =>
    signIn.end(callWith(cookie), new URLSearchParams({ state, code })).then(
      () => 'let in',
      (error: unknown) => (error instanceof ApiFailure ? error.error.reason : error),
    );
  const many = Array.from({ length: 200 }, (_, index) => end(`made up ${index}`));
  expect(await Promise.race(many)).toBe('SIGN_IN_BUSY');
  resolve({ kind: 'silent' });
  const reasons = await Promise.all(many);
  expect(asked).toBe(exchangesMax);
  expect(reasons.filter((reason) => reason === 'ISSUER_UNAVAILABLE')).toHaveLength(exchangesMax);
  expect(reasons.filter((reason) => reason === 'SIGN_IN_BUSY')).toHaveLength(200 - exchangesMax);
  // A finished exchange makes room.
  expect(await end('one more')).toBe('ISSUER_UNAVAILABLE');
});
