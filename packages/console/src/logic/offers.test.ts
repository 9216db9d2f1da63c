/** The offered actions are those that the server's table of rights allows a role. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Role } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { isOffered, offers } from './offers.ts';

/** The table that the control plane's own tests hold its methods to. */
const access = readFileSync(
  join(import.meta.dirname, '../../../../controlplane/src/services/access.txt'),
  'utf8',
);
const roles: Readonly<Record<string, Role>> = {
  viewer: Role.VIEWER,
  operator: Role.OPERATOR,
  admin: Role.ADMIN,
};

test.each(Object.entries(offers))('%s is offered as the server allows it', (_, offer) => {
  const line = access.split('\n').find((each) => each.includes(`v1.${offer.method}: `)) ?? '';
  const [, role = '', reach = ''] = /: (\w+)[^,]*, (\w+)/.exec(line) ?? [];
  expect({ role: roles[role], isFleetWide: reach === 'fleet' }).toEqual({
    role: offer.role,
    isFleetWide: offer.isFleetWide,
  });
});

/** The sources of pages and their parts, without the table itself. */
const pages = ['pages', 'parts'].flatMap((folder) => {
  const path = join(import.meta.dirname, '..', folder);
  return readdirSync(path).map((name) => readFileSync(join(path, name), 'utf8'));
});
/** Names that a page asks for: by `isOffered(…)`, or in a row of its actions. */
const offeredBy = pages.flatMap((text) => [
  ...[...text.matchAll(/isOffered\(([^)]*)\)/g)].flatMap(([, asked = '']) =>
    [...asked.matchAll(/'(\w+)'/g)].map(([, name]) => name),
  ),
  ...[...text.matchAll(/\brow\(\s*'\w+',\s*'[^']*',\s*'(\w+)'/g)].map(([, name]) => name),
]);

test.each(Object.entries(offers))(
  '%s is offered by a page, which calls its method',
  (name, offer) => {
    expect(offeredBy).toContain(name);
    const [, method = ''] = offer.method.split('/');
    const call = `.${method.charAt(0).toLowerCase()}${method.slice(1)}(`;
    expect(
      pages.some((text) => text.includes(call)),
      call,
    ).toBe(true);
  },
);

test('a viewer is offered nothing that changes, a scoped admin no brake of the fleet', () => {
  const viewer = { role: Role.VIEWER, isScoped: false };
  const all = Object.keys(offers) as (keyof typeof offers)[];
  expect(all.filter((name) => isOffered(viewer, name))).toEqual([]);
  const scoped = { role: Role.ADMIN, isScoped: true };
  expect(all.filter((name) => !isOffered(scoped, name))).toEqual(['freezeFleet', 'thawFleet']);
  expect(isOffered({ role: Role.ADMIN, isScoped: false }, 'freezeFleet')).toBe(true);
  expect(isOffered({ role: Role.OPERATOR, isScoped: false }, 'freezeFleet')).toBe(false);
});
