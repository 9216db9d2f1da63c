import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseChallenges } from './challenge.ts';

test('the parser reads what Docker Hub sends', () => {
  const header =
    'Bearer realm="https://auth.docker.io/token",service="registry.docker.io",' +
    'scope="repository:library/alpine:pull"';
  expect(parseChallenges(header)).toEqual([
    {
      scheme: 'bearer',
      parameters: {
        realm: 'https://auth.docker.io/token',
        service: 'registry.docker.io',
        scope: 'repository:library/alpine:pull',
      },
    },
  ]);
});

test('the parser reads several challenges, quoted commas, escapes and what Negotiate sends', () => {
  const header = 'Negotiate dGVzdA==, BASIC realm="a, \\"b\\"" , Digest qop=auth,nonce = "x"';
  expect(parseChallenges(header)).toEqual([
    { scheme: 'negotiate', parameters: {} },
    { scheme: 'basic', parameters: { realm: 'a, "b"' } },
    { scheme: 'digest', parameters: { qop: 'auth', nonce: 'x' } },
  ]);
});

test('the parser takes the first of two values, and nothing of what cannot be read', () => {
  const [first] = parseChallenges('Basic realm=a, realm=b');
  expect(first?.parameters).toEqual({ realm: 'a' });
  for (const header of ['="x"', 'realm="x', 'Basic realm="x', '\u0000', 'x'.repeat(9_000)]) {
    expect(parseChallenges(header)).toEqual([]);
  }
});

test('any header ends in challenges or in nothing', () => {
  const texts = fc.array(fc.constantFrom('Basic', ' ', ',', '=', '"', '\\', 'a', 'Bearer', '=='));
  fc.assert(
    fc.property(texts, (parts) => {
      for (const { scheme } of parseChallenges(parts.join(''))) {
        expect(scheme).toMatch(/^[a-z]+$/);
      }
    }),
  );
});
