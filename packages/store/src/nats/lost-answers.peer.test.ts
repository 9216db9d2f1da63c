/** Writes whose acknowledgement is lost on the way, through a relay that can withhold answers. */
import { once } from 'node:events';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { bytes } from '../conformance/subject.ts';
import { asWriteId, findWrite, type StateStore } from '../contract.ts';
import { NatsCluster, serverMissing } from '../testing/nats-cluster.ts';
import { openNatsStore } from './open.ts';
import type { NatsStoreOptions } from './options.ts';
import { clusterOptions } from './subject.ts';

/** Relays to one server; while `deaf`, requests get through and answers are thrown away. */
class Relay {
  deaf = false;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  constructor(target: string) {
    const [host = '', port = ''] = target.split(':');
    this.#server = createServer((near) => {
      const far = createConnection({ host, port: Number(port) });
      near.pipe(far);
      far.on('data', (answer) => {
        if (!this.deaf) near.write(answer);
      });
      for (const socket of [near, far]) {
        this.#sockets.add(socket);
        socket.on('error', () => {});
        socket.on('close', () => {
          near.destroy();
          far.destroy();
        });
      }
    });
  }

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    const address = this.#server.address();
    return `127.0.0.1:${address !== null && typeof address === 'object' ? address.port : 0}`;
  }

  /** Cuts every connection; new ones are relayed. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#sockets.clear();
  }

  close(): void {
    this.#server.close();
    this.cut();
  }
}

let cluster: NatsCluster;
let relay: Relay;
let direct: StateStore;
let options: NatsStoreOptions;

beforeAll(async () => {
  if (serverMissing() !== undefined) return;
  cluster = await NatsCluster.start({ servers: 1, syncAlways: true });
});

beforeEach(async (context) => {
  const reason = serverMissing();
  if (reason !== undefined) context.skip(reason);
  relay = new Relay(cluster.addresses[0] ?? '');
  options = clusterOptions(cluster);
  direct = await openNatsStore(options);
  options = { ...options, servers: [await relay.listen()], attemptTimeoutMs: 1_000 };
});

afterEach(async () => {
  await direct?.close();
  relay?.close();
});

afterAll(() => cluster?.dispose());

/** Waits until the write through the deaf relay has reached the server. */
async function landed(key: string): Promise<void> {
  const kind = async () => (await direct.get(key)).kind;
  await expect.poll(kind, { interval: 20 }).not.toBe('absent');
}

test('a write whose acknowledgement is lost is ok by its id once the server answers', async () => {
  const store = await openNatsStore({ ...options, callTimeoutMs: 20_000 });
  relay.deaf = true;
  const write = store.put('hosts.a', bytes('one'), 'absent');
  await landed('hosts.a');
  await delay(400);
  relay.deaf = false;
  relay.cut();
  const result = await write;
  expect(result).toMatchObject({ kind: 'ok', revision: (await direct.get('hosts.a')).revision });
  expect(await direct.history('hosts.a')).toHaveLength(1);
  await store.close();
});

test('a write that nobody answers in time is unknown, and ok when repeated by its id', async () => {
  const store = await openNatsStore({ ...options, callTimeoutMs: 4_000 });
  relay.deaf = true;
  const result = await store.put('hosts.a', bytes('one'), 'absent', asWriteId('write-1'));
  expect(result).toMatchObject({
    kind: 'unknown',
    writeId: 'write-1',
    reason: expect.stringMatching(/timeout/i),
  });
  relay.deaf = false;
  relay.cut();
  await delay(500);
  const again = await store.put('hosts.a', bytes('one'), 'absent', asWriteId('write-1'));
  expect(again).toMatchObject({ kind: 'ok', revision: (await direct.get('hosts.a')).revision });
  expect(await direct.history('hosts.a')).toHaveLength(1);
  await store.close();
});

test('a lost acknowledgement is found although another write and a delete followed', async () => {
  const store = await openNatsStore({ ...options, callTimeoutMs: 20_000 });
  relay.deaf = true;
  const write = store.put('hosts.a', bytes('one'), 'absent', asWriteId('write-1'));
  await landed('hosts.a');
  const first = (await direct.get('hosts.a')).revision ?? 0;
  const second = await direct.put('hosts.a', bytes('two'), first);
  await direct.delete('hosts.a', second.kind === 'ok' ? second.revision : 0);
  relay.deaf = false;
  relay.cut();
  expect(await write).toEqual({ kind: 'ok', revision: first, writeId: 'write-1' });
  expect((await direct.get('hosts.a')).kind).toBe('absent');
  expect(await findWrite(direct, 'hosts.a', asWriteId('write-1'))).toEqual({
    kind: 'landed',
    revision: first,
  });
  await store.close();
});

test('a read that nobody answers in time is unavailable', async () => {
  const store = await openNatsStore({ ...options, callTimeoutMs: 3_000 });
  relay.deaf = true;
  await expect(store.get('hosts.a')).rejects.toMatchObject({ code: 'unavailable' });
  relay.deaf = false;
  await store.close();
});
