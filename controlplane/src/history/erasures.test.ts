/** The signed documents of one host are found without reading those of others. */
import { ErasureDocumentKind, type HostUid } from '@rackwright/messages';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { writeCertificates, writeDocuments } from '../host/shell/erasure-records.ts';
import { type Fixture, startFixture } from '../services/rpc.fixture.ts';

let fixture: Fixture;
let rows = 0;

beforeAll(async () => {
  fixture = await startFixture();
  const { store } = fixture;
  const [list, get] = [store.list.bind(store), store.get.bind(store)];
  Object.assign(store, {
    list: async (...given: Parameters<typeof list>) => {
      const answer = await list(...given);
      rows += 'entries' in answer ? answer.entries.length : 0;
      return answer;
    },
    get: async (key: string) => {
      rows += 1;
      return await get(key);
    },
  });
});

afterAll(() => fixture.stop());

function writer(): Parameters<typeof writeDocuments>[0] {
  return {
    ...{ store: fixture.store, random: nodeRandom(), clock: nodeClock() },
    signStatement: () => new Uint8Array([1]),
    crashPoint: () => {},
  };
}

/** Two certificates, an addendum and a manifest of a host that has no record (any more). */
async function sign(host: string, hostUid: HostUid): Promise<void> {
  const deps = writer();
  const statement = new TextEncoder().encode('{\n  "evidence": "AAAA",\n}');
  const ids = [1, 2].map((number) => `${hostUid}-1-4-1-${number}-0123abcd`);
  await writeCertificates(
    deps,
    hostUid,
    ids.map((id) => ({ id, host, statement })),
  );
  const { MANIFEST, ADDENDUM } = ErasureDocumentKind;
  const about = { host, hostUid, certificates: [], useEpoch: 1n, statement };
  await writeDocuments(deps, [
    { id: `${hostUid}-1-5-1-manifest`, kind: MANIFEST, ...about },
    { id: `${ids[0]}-addendum`, kind: ADDENDUM, ...about },
  ]);
}

/** Rows of the store that both lists of a host read, once the caller is known. */
async function rowsRead(host: string): Promise<number> {
  await fixture.erasures.listErasureCertificates({ host });
  rows = 0;
  const { erasureCertificates } = await fixture.erasures.listErasureCertificates({ host });
  const { erasureDocuments } = await fixture.erasures.listErasureDocuments({ host });
  expect([erasureCertificates.length, erasureDocuments.length]).toEqual([2, 2]);
  return rows;
}

test('the lists of one host read as many rows among 20 hosts as among 200', async () => {
  const read: number[] = [];
  for (const count of [20, 200]) {
    for (let n = read.length === 0 ? 0 : 20; n < count; n++) {
      await sign(`hosts/h${n}`, `00000000-0000-0000-0000-${String(n).padStart(12, '0')}`);
    }
    read.push(await rowsRead('hosts/h7'));
  }
  expect(read[1]).toBe(read[0]);
});

test('hosts that bore a name one after the other are listed together, page by page', async () => {
  for (const uid of ['bbb', 'aaa']) await sign('hosts/reborn', uid);
  const names: string[] = [];
  let pageToken = '';
  do {
    const request = { host: 'hosts/reborn', pageSize: 3, pageToken };
    const page = await fixture.erasures.listErasureCertificates(request);
    names.push(...page.erasureCertificates.map(({ name }) => name));
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
  expect(names.map((name) => name.slice(0, 23))).toEqual([
    ...['erasureCertificates/aaa', 'erasureCertificates/aaa'],
    ...['erasureCertificates/bbb', 'erasureCertificates/bbb'],
  ]);
  const first = await fixture.erasures.getErasureCertificate({ name: names[0] ?? '' });
  expect(first).toMatchObject({ host: 'hosts/reborn', powerCycleProof: 2 });
});

test('a stored document about a certificate is never replaced by another reading', async () => {
  const hostUid = '00000000-0000-0000-0000-000000000777';
  await sign('hosts/twice', hostUid);
  const { ADDENDUM, MANIFEST } = ErasureDocumentKind;
  const writes = async (kind: typeof ADDENDUM | typeof MANIFEST, id: string) => {
    const statement = new TextEncoder().encode('of another reading');
    const about = { host: 'hosts/twice', hostUid, certificates: [], useEpoch: 1n, statement };
    return writeDocuments(writer(), [{ id: `${hostUid}-${id}`, kind, ...about }]);
  };
  expect(await writes(ADDENDUM, '1-4-1-1-0123abcd-addendum')).toEqual(new Map());
  const existing = await writes(MANIFEST, '1-5-1-manifest');
  expect([...existing.keys()]).toEqual([`${hostUid}-1-5-1-manifest`]);
  const { erasureDocuments } = await fixture.erasures.listErasureDocuments({ host: 'hosts/twice' });
  const said = erasureDocuments.map(({ statement }) => new TextDecoder().decode(statement));
  expect(said.join()).not.toContain('of another reading');
});
