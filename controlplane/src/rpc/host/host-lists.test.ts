/** Lists of hosts by what they are found by, in pages, as they are at the moment of the call. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { addSurroundings, type Fixture, failureOf, specOf, startFixture } from '../rpc.fixture.ts';

let fixture: Fixture;

beforeAll(async () => {
  fixture = await startFixture();
  await addSurroundings(fixture);
  await fixture.racks.createRack({ rackId: 'r2' });
  for (let n = 1; n <= 12; n += 1) await create(n, n % 2 === 0 ? 'racks/r2' : 'racks/r1');
});

afterAll(() => fixture.stop());

const create = (n: number, rack: string) =>
  fixture.hosts.createHost({ hostId: `h${n}`, host: { spec: { ...specOf(n), rack } } });

async function listed(rack: string, pageSize: number): Promise<string[]> {
  const names: string[] = [];
  let pageToken = '';
  do {
    const page = await fixture.hosts.listHosts({ rack, pageSize, pageToken });
    expect(page.hosts.length).toBeLessThanOrEqual(pageSize);
    names.push(...page.hosts.map(({ name }) => name));
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
  return names;
}

const even = ['h10', 'h12', 'h2', 'h4', 'h6', 'h8'].map((id) => `hosts/${id}`);
const odd = ['h1', 'h11', 'h3', 'h5', 'h7', 'h9'].map((id) => `hosts/${id}`);

test.each([1, 2, 5, 6, 100])('pages of %i show each host once, in one order', async (size) => {
  expect(await listed('racks/r2', size)).toEqual(even);
  expect(await listed('', size)).toEqual([...odd, ...even].toSorted());
});

test('a host is in the list of its rack at once, and in no list once it has gone', async () => {
  for (let n = 20; n < 30; n += 1) {
    await create(n, 'racks/r2');
    expect(await listed('racks/r2', 100)).toContain(`hosts/h${n}`);
  }
  const { entries } = await fixture.store.list('hosts.h20');
  await fixture.store.delete('hosts.h20', entries[0]?.revision ?? 0);
  expect(await listed('racks/r2', 100)).not.toContain('hosts/h20');
});

test('a rack is not deleted while the host that was just made is in it', async () => {
  await fixture.racks.createRack({ rackId: 'r3' });
  await create(40, 'racks/r3');
  const refused = await failureOf(fixture.racks.deleteRack({ name: 'racks/r3' }));
  expect(refused).toMatchObject({ reason: 'RACK_HAS_HOSTS' });
});

test('a page token that names no resource is refused', async () => {
  const text = JSON.stringify([fixture.store.incarnation, '', 'hosts. or so']);
  const pageToken = Buffer.from(text).toString('base64url');
  const refused = await failureOf(fixture.hosts.listHosts({ pageToken }));
  expect(refused).toMatchObject({ kind: 'invalidArgument' });
});
