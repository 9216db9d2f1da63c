import { ApiFailure, alreadyExists, failedPrecondition, Role } from '@rackwright/messages';
import { nodeRandom } from '@rackwright/platform/node';
import { openMemoryStore, type StateStore } from '@rackwright/store';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { HostLocations } from './host-locations.ts';
import { systemPrincipal } from './principal.ts';
import { askedFor } from './reach.ts';
import { Redaction } from './redact.ts';
import { accessTable } from './table.ts';

const caller = {
  ...systemPrincipal,
  role: Role.OPERATOR,
  scope: { racks: ['racks/aa'], pools: [] },
};
const places = new HostLocations({ rows: () => [] as never });
let store: StateStore;

beforeEach(async () => {
  store = await openMemoryStore({ random: nodeRandom() });
});

afterEach(() => store.close());

async function shown(error: ApiFailure, path: string, request: object) {
  const row = accessTable[`rackwright.v1.${path}`];
  if (row === undefined) throw new Error('no row');
  const asked = askedFor(row, request as Readonly<Record<string, unknown>>);
  const told = await new Redaction(caller, store, asked, places).error(error);
  if (!(told instanceof ApiFailure)) throw new Error('no failure');
  return told.error;
}

test('an error names nothing of elsewhere in its metadata, nor as its whole text', async () => {
  const metadata = { resource: 'hosts/db-7', why: 'like hosts/db-8', own: 'hosts/mine' };
  const error = failedPrecondition('BUSY', 'hosts/db-7', metadata);
  const told = await shown(error, 'HostService/CleanHost', { name: 'hosts/mine' });
  expect(JSON.stringify(told)).not.toContain('db-');
  expect(told.metadata?.['own']).toBe('hosts/mine');
});

test('a guess that stands somewhere in the request is not confirmed', async () => {
  const error = alreadyExists('host.spec.boot_macs[0] belongs to hosts/db-7.', [
    { field: 'host.spec.boot_macs[0]', description: 'belongs to hosts/db-7' },
  ]);
  const labels = { note: 'hosts/db-6 hosts/db-7 hosts/db-8' };
  const create = { hostId: 'x', host: { labels, name: 'hosts/db-7' }, reason: 'hosts/db-7' };
  expect(JSON.stringify(await shown(error, 'HostService/CreateHost', create))).not.toContain('db-');
  const update = { host: { name: 'hosts/mine', labels } };
  expect(JSON.stringify(await shown(error, 'HostService/UpdateHost', update))).not.toContain('db-');
  const own = { host: { name: 'hosts/db-7', labels } };
  expect((await shown(error, 'HostService/UpdateHost', own)).message).toContain('hosts/db-7');
});

test('a missing resource is named only if the request named it', async () => {
  const error = new ApiFailure({
    kind: 'notFound',
    reason: 'RESOURCE_NOT_FOUND',
    message: 'credentials/theirs does not exist.',
    metadata: { resource: 'credentials/theirs' },
  });
  const told = await shown(error, 'HostService/CleanHost', { name: 'hosts/mine' });
  expect(JSON.stringify(told)).not.toContain('theirs');
  expect(told.message).toContain('hosts/mine does not exist in the scope');
});
