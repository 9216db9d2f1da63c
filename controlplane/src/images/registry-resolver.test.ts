import { create } from '@bufbuild/protobuf';
import { type FailureName, FleetSpecSchema, store as wire } from '@rackwright/messages';
import { digestOf } from '@rackwright/oci';
import { type Page, pagesWeb, writeImage } from '@rackwright/oci/testing';
import type { WebOutcome, WebRequest } from '@rackwright/platform';
import { EventHeap, SimProcess, seededRandom } from '@rackwright/sim';
import { MemoryDisk, openMemoryStore, storeKey } from '@rackwright/store';
import { expect, test } from 'vitest';
import { writeRecord } from '../records/index.ts';
import { askRegistries } from './registry-resolver.ts';

const name = 'registry.example/os/web:stable';
const image = writeImage([], {});
const manifest = image.blobs.get(image.manifest) ?? Buffer.of();

type Answer = (request: WebRequest) => Page | WebOutcome;

async function resolver(answer: Answer, registry: Record<string, unknown> = {}) {
  const heap = new EventHeap();
  const { clock } = new SimProcess('cp', heap, 0, () => false);
  const random = seededRandom(1);
  const store = await openMemoryStore({ random, disk: new MemoryDisk() });
  const credential = { name: 'credentials/c1', version: 3n, racks: ['racks/r1'] };
  const record = create(wire.CredentialRecordSchema, { credential });
  const key = storeKey('credentials', 'c1');
  await writeRecord({ store }, wire.CredentialRecordSchema, key, record, 'absent');
  const spec = create(FleetSpecSchema, {
    registries: [{ registry: 'registry.example', ...registry }],
  });
  const { web, requests } = pagesWeb(answer);
  const noted: unknown[] = [];
  const ask = askRegistries({
    ...{ store, clock, web },
    audit: { note: (line) => void noted.push(line) },
    openCredential: () => ({ username: 'reader', password: 'hidden' }),
    fleet: async () => create(wire.FleetRecordSchema, { fleet: { spec } }),
  });
  const resolve = (known = '', wanted = name) => ask(wanted, known, new AbortController().signal);
  return { resolve, requests, noted, heap, store };
}

/** A registry's response for the tag. */
function found({ method }: WebRequest): Page {
  const headers = { 'docker-content-digest': image.manifest };
  return method === 'HEAD' ? { headers } : { headers, body: manifest };
}

test('a tag is what the hash of its manifest says; an unchanged one costs no body', async () => {
  const { resolve, requests } = await resolver(found);
  const platforms = { '': image.manifest };
  const digest = { kind: 'digest', digest: image.manifest, version: '', platforms };
  expect(await resolve()).toEqual(digest);
  expect(requests.at(-1)?.url).toBe(
    `https://registry.example/v2/os/web/manifests/${image.manifest}`,
  );
  const before = requests.length;
  expect(await resolve(image.manifest)).toEqual({ kind: 'unchanged' });
  expect(requests.slice(before).map(({ method }) => method)).toEqual(['HEAD']);
  expect(requests.at(-1)?.headers['if-none-match']).toBe(`"${image.manifest}"`);
});

test('a manifest that is not what its registry calls it is no answer', async () => {
  const other = digestOf(Buffer.from('another'));
  const { resolve } = await resolver(({ method }) =>
    method === 'HEAD' ? { headers: { 'docker-content-digest': other } } : { body: manifest },
  );
  expect(await resolve()).toMatchObject({ kind: 'failed', type: 'imageDigestMismatch' });
});

test('the fleet says how to ask; no mirror is asked, and a credential is on record', async () => {
  const challenge = { 'www-authenticate': 'Basic realm="r"' };
  const { resolve, requests, noted } = await resolver(
    (request) =>
      request.headers['authorization'] === undefined
        ? { status: 401, headers: challenge }
        : found(request),
    {
      plainHttp: true,
      credential: 'credentials/c1',
      mirrors: [{ registry: 'mirror.example' }],
    },
  );
  expect(await resolve()).toMatchObject({ kind: 'digest' });
  const hosts = requests.map(({ url }) => new URL(url).host);
  expect(new Set(hosts)).toEqual(new Set(['registry.example']));
  expect(requests[0]?.url).toMatch(/^http:/);
  expect(noted).toHaveLength(1);
  expect(
    JSON.stringify(noted, (_, value) => (typeof value === 'bigint' ? `${value}` : value)),
  ).not.toContain('hidden');
});

test.for<[number, FailureName, string]>([
  [401, 'registryUnauthorized', 'rackwright fleet registry set registry.example --credential ID'],
  [404, 'imageNotFound', 'the tag has been pushed'],
  [500, 'registryUnreachable', 'see that it can be reached from the control plane'],
])('an answer %i is %s, with what to do', async ([status, type, remedy]) => {
  const { resolve } = await resolver(() => ({ status }));
  const answer = await resolve();
  expect(answer).toMatchObject({ kind: 'failed', type });
  expect(answer.kind === 'failed' && answer.message).toContain('registry.example');
  expect(answer.kind === 'failed' && answer.message).toContain(remedy);
});

test('a registry that says when to come again is not asked before, and then is', async () => {
  let answer: Answer = () => ({ status: 429, headers: { 'retry-after': '120' } });
  const { resolve, requests, heap } = await resolver((request) => answer(request));
  expect(await resolve()).toMatchObject({ type: 'registryUnreachable', retryAfterMs: 120_000 });
  const before = requests.length;
  answer = found;
  expect(await resolve('', 'registry.example/os/db:1')).toMatchObject({
    type: 'registryUnreachable',
  });
  expect(requests).toHaveLength(before);
  heap.after(121_000, () => {});
  await heap.run(121_000, () => false);
  expect(await resolve()).toMatchObject({ kind: 'digest' });
});

test('while the store does not answer no registry counts as refusing', async () => {
  const { resolve, requests, store } = await resolver(found, { credential: 'credentials/c1' });
  await store.close();
  await expect(resolve()).rejects.toMatchObject({ error: { kind: 'unavailable' } });
  expect(requests).toEqual([]);
});

test('a credential that is not there is said, and nobody is asked', async () => {
  const { resolve, requests } = await resolver(found, { credential: 'credentials/c9' });
  const answer = await resolve();
  expect(answer.kind === 'failed' && answer.message).toContain('rackwright credential create c9');
  expect(requests).toEqual([]);
});
