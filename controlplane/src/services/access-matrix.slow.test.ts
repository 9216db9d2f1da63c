/**
 * Every method of the operators' port × every role × every scope × resources in and out of it,
 * against a server: permitted or refused as in the table, and nothing out of scope in any response.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DescMethod } from '@bufbuild/protobuf';
import { Role } from '@rackwright/messages';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { accessTable } from '../access/index.ts';
import { addSide, type Names, type Side, tokenFor } from './access.fixture.ts';
import { callOf, methods, pathOf, requestOf as requestFor } from './every-method.fixture.ts';
import { type Fixture, startFixture } from './rpc.fixture.ts';

/** A row of access.txt. */
interface Agreed {
  /** Least role. */
  readonly role: Role;
  readonly kind: string;
}

const leastRoles: Readonly<Record<string, Role>> = {
  anybody: Role.UNSPECIFIED,
  viewer: Role.VIEWER,
  operator: Role.OPERATOR,
  admin: Role.ADMIN,
};

let fixture: Fixture;
let names: Record<Side, Names>;

const roles = { viewer: Role.VIEWER, operator: Role.OPERATOR, admin: Role.ADMIN } as const;
const scopes = {
  everything: {},
  'a rack': { racks: ['racks/aa-rack'] },
  'a pool': { pools: ['aa-pool'] },
} as const;
type ScopeName = keyof typeof scopes;
const tokens = new Map<string, string>();

beforeAll(async () => {
  fixture = await startFixture();
  names = { aa: await addSide(fixture, 'aa'), zz: await addSide(fixture, 'zz') };
  for (const [role, value] of Object.entries(roles)) {
    for (const [scope, places] of Object.entries(scopes)) {
      const tokenId = `${role}-${scope.replace(' ', '-')}`;
      const given = { racks: [], pools: [], ...places };
      const copy = { racks: [...given.racks], pools: [...given.pools] };
      tokens.set(`${role} ${scope}`, await tokenFor(fixture, tokenId, value, copy));
    }
  }
});

afterAll(() => fixture.stop());

const requestOf = (method: DescMethod, side: Side) => requestFor(method, side, names[side]);
const call = (method: DescMethod, request: object, token: string | undefined) =>
  callOf(fixture.channel, method, { ...request }, token);

/** Refusals for a missing right; any other error means that the call was permitted. */
const refusals = new Set([
  'ROLE_TOO_SMALL',
  'SCOPE_TOO_SMALL',
  'OUT_OF_SCOPE',
  'NOT_FOUND_IN_SCOPE',
  'NO_ACCESS_RULE',
  'TOKEN_MISSING',
  'TOKEN_WRONG',
]);

/**
 * The agreed rules, by a method's path: the expectation comes from the text that people have read,
 * not from the table that decides.
 */
const agreed: ReadonlyMap<string, Agreed> = new Map(
  readFileSync(join(import.meta.dirname, 'access.txt'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => {
      const [, path = '', role = '', kind = ''] =
        /^(\S+): (\w+)(?: or more)?, (\w+)/.exec(line) ?? [];
      return [path, { role: leastRoles[role] ?? Role.ADMIN, kind }];
    }),
);

test('every method that is served has a row, and every row a method', () => {
  expect(Object.keys(accessTable).toSorted()).toEqual(methods.map(pathOf).toSorted());
});

test('the table reads as it was agreed', async () => {
  const lines = Object.entries(accessTable).map(
    ([path, { role, reach, changes, raised, pointsBmc }]) => {
      const name = Object.entries(Role).find(([, value]) => value === role)?.[0] ?? '';
      const least = role === Role.UNSPECIFIED ? 'anybody' : name.toLowerCase();
      const field = 'field' in reach ? ` ${reach.field}` : '';
      const more = raised || pointsBmc ? ' or more' : '';
      return `${path}: ${least}${more}, ${reach.kind}${field}${changes ? ', changes' : ''}`;
    },
  );
  await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot('access.txt');
});

test('without a token only what is open answers', async () => {
  for (const method of methods) {
    const { reason } = await call(method, requestOf(method, 'aa'), undefined);
    const isOpen = accessTable[pathOf(method)]?.reach.kind === 'open';
    expect(`${pathOf(method)} ${reason === 'TOKEN_MISSING'}`).toBe(`${pathOf(method)} ${!isOpen}`);
  }
});

describe.each(Object.keys(roles) as (keyof typeof roles)[])('as %s', (role) => {
  describe.each(Object.keys(scopes) as ScopeName[])('of %s', (scope) => {
    test.each(methods.map((method) => [pathOf(method), method] as const))(
      '%s is allowed or refused as the table says',
      async (_, method) => {
        const row = agreed.get(pathOf(method));
        if (row === undefined) throw new Error('access.txt has no row');
        for (const side of ['aa', 'zz'] as const) {
          const request = requestOf(method, side);
          const token = tokens.get(`${role} ${scope}`);
          const { reason, text } = await call(method, request, token);
          const expected = expectedOf(row, roles[role], scope, side, request);
          expect(`${side}: ${refusals.has(reason) ? reason : 'let in'}`).toBe(
            `${side}: ${expected}`,
          );
          if (scope === 'everything') continue;
          // The caller's own words reveal nothing new to it.
          const own = JSON.stringify(request, (_key, value) =>
            typeof value === 'bigint' ? String(value) : value,
          );
          if (!own.includes('zz-')) expect(text).not.toMatch(/zz-|192\.0\.2\.|:bb:/);
        }
      },
    );
  });
});

/** The agreed result of the call. */
function expectedOf(
  { role, kind }: Agreed,
  held: Role,
  scope: ScopeName,
  side: Side,
  request: Readonly<Record<string, unknown>>,
): string {
  if (kind === 'open') return 'let in';
  if (held < role) return 'ROLE_TOO_SMALL';
  if (scope === 'everything') return 'let in';
  const isRack = scope === 'a rack';
  const isIn = side === 'aa';
  switch (kind) {
    case 'self':
      return 'let in';
    case 'fleet':
      return 'SCOPE_TOO_SMALL';
    case 'host':
      return isIn ? 'let in' : 'NOT_FOUND_IN_SCOPE';
    case 'rack':
      return isIn && isRack ? 'let in' : 'NOT_FOUND_IN_SCOPE';
    case 'made':
    case 'batch':
      return isIn ? 'let in' : 'OUT_OF_SCOPE';
    case 'seen':
    case 'resource':
      return showsList(request) || (isIn && (isRack || !isOfRackAlone(request)))
        ? 'let in'
        : 'NOT_FOUND_IN_SCOPE';
    default:
      throw new Error(`access.txt has "${kind}"`);
  }
}

function isOfRackAlone(request: Readonly<Record<string, unknown>>): boolean {
  return /discoveredMachines|abandonedResources/.test(JSON.stringify(request));
}

function showsList(request: Readonly<Record<string, unknown>>): boolean {
  const named = JSON.stringify(request);
  return !named.includes('aa-') && !named.includes('zz-') && !hasName(request);
}

function hasName(request: Readonly<Record<string, unknown>>): boolean {
  return typeof request['name'] === 'string';
}
