/** Registries at internal addresses, asked by the real client over real sockets. */
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { FleetSpecSchema, store as wire } from '@rackwright/messages';
import { digestOf } from '@rackwright/oci';
import { guardedWebClient, nodeClock, nodeRandom } from '@rackwright/platform/node';
import { MemoryDisk, openMemoryStore } from '@rackwright/store';
import { afterEach, expect, test } from 'vitest';
import { hostImageOf, internalAddressesOf } from './access.ts';
import { askRegistries } from './registry-resolver.ts';

const closers: (() => void)[] = [];

afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/** "127.0.0.1:PORT" */
async function serve(handle: RequestListener): Promise<{ place: string; asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url} ${request.headers.authorization ?? '-'}`);
    handle(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.push(() => server.close().closeAllConnections());
  return { place: `127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

async function ask(place: string, spec: MessageInitShape<typeof FleetSpecSchema>) {
  const random = nodeRandom();
  const resolve = askRegistries({
    store: await openMemoryStore({ random, disk: new MemoryDisk() }),
    ...{ clock: nodeClock(), web: guardedWebClient() },
    openCredential: () => ({ username: 'reader', password: 'hidden' }),
    fleet: async () =>
      create(wire.FleetRecordSchema, { fleet: { spec: create(FleetSpecSchema, spec) } }),
  });
  return resolve(`${place}/os/web:1`, '', new AbortController().signal);
}

const body = Buffer.from('{"schemaVersion":2}');
const manifest: RequestListener = (_, response) => {
  response.writeHead(200, { 'docker-content-digest': digestOf(body) }).end(body);
};

test('an internal registry is asked only where the fleet names or lists it', async () => {
  const { place, asked } = await serve(manifest);
  expect(await ask(place, {})).toMatchObject({
    ...{ kind: 'failed', type: 'notAllowed' },
    message: expect.stringContaining('rackwright fleet update --internal-address'),
  });
  const port = place.split(':')[1];
  for (const other of [`localhost:${port}`, `[::ffff:127.0.0.1]:${port}`, `0x7f.1:${port}`]) {
    expect(await ask(other, { registries: [] }), other).toMatchObject({ kind: 'failed' });
  }
  expect(asked).toEqual([]);
  const named = { registries: [{ registry: place, plainHttp: true }] };
  expect(await ask(place, named)).toMatchObject({ kind: 'digest' });
  expect(asked).toHaveLength(2);
});

test('a registry leads nobody to an internal address that is not listed', async () => {
  const hidden = await serve(manifest);
  const bearer = `Bearer realm="http://${hidden.place}/token"`;
  const ways: RequestListener[] = [
    (_, response) => response.writeHead(307, { location: `http://${hidden.place}/x` }).end(),
    (_, response) => response.writeHead(401, { 'www-authenticate': bearer }).end(),
  ];
  for (const way of ways) {
    const { place } = await serve(way);
    const registries = [{ registry: place, plainHttp: true }];
    expect(await ask(place, { registries })).toMatchObject({ type: 'notAllowed' });
    expect(hidden.asked).toEqual([]);
  }
  const { place } = await serve(ways[0] ?? manifest);
  const registries = [{ registry: place, plainHttp: true }];
  const listed = { registries, internalAddresses: [hidden.place] };
  expect(await ask(place, listed)).toMatchObject({ kind: 'digest' });
});

test('an agent is told what the fleet lists, and the places that it names itself', () => {
  const registries = create(FleetSpecSchema, {
    registries: [
      { registry: 'localhost:5000', plainHttp: true, mirrors: [{ registry: '169.254.1.1' }] },
      { registry: 'registry.example', tokenService: 'auth.example' },
    ],
  });
  const sources = { ...registries, internalAddresses: ['127.0.0.9:1'] };
  expect(internalAddressesOf(sources, 'localhost:5000')).toEqual([
    ...['127.0.0.9:1', '127.0.0.1:5000', '[::1]:5000', '169.254.1.1:443'],
  ]);
  const reference = `registry.example/os@${digestOf(body)}`;
  expect(hostImageOf(reference, sources, new Map())).toMatchObject({
    image: { tokenService: 'auth.example', internalAddresses: ['127.0.0.9:1'] },
  });
});
