import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, createServer, connect as netConnect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  agent,
  Health,
  HostService,
  parseJoinToken,
  HealthCheckResponse_ServingStatus as ServingStatus,
  signCertificateProof,
} from '@rackwright/messages';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { connect, createClient, fetchPinnedCertificate } from '@rackwright/rpc';
import { MemoryDisk, openMemoryStore } from '@rackwright/store';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { countedStore } from './records/counted.fixture.ts';
import { type Fixture, failureOf, startFixture, startOn } from './services/rpc.fixture.ts';

let fixture: Fixture;
const clock = nodeClock();

beforeEach(async () => {
  fixture = await startFixture();
});

afterEach(() => fixture.stop());

describe('the ports', () => {
  test('refuse plain text, both of them', async () => {
    const { operatorsPort, agentsPort } = fixture.controlPlane;
    for (const port of [operatorsPort, agentsPort]) {
      const answer = await new Promise<Buffer>((resolve) => {
        const chunks: Buffer[] = [];
        const socket = netConnect(port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\n\r\n'));
        socket.on('data', (chunk) => chunks.push(chunk));
        socket.on('error', () => undefined);
        socket.on('close', () => resolve(Buffer.concat(chunks)));
      });
      // At most a TLS alert.
      expect(answer.length === 0 || answer[0] === 0x15).toBe(true);
    }
  });

  test('are all closed again when one of them cannot be opened', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'controlplane-'));
    const free = createServer().listen(0, '127.0.0.1');
    await once(free, 'listening');
    const { port } = free.address() as AddressInfo;
    free.close();
    await once(free, 'close');
    const store = openMemoryStore({ random: nodeRandom(), disk: new MemoryDisk() });
    const address = '127.0.0.1';
    const agents = { address, port: fixture.controlPlane.agentsPort, advertise: 'cp:1' };
    const config = { operators: { address, port }, agents };
    await expect(startOn(folder, await store, undefined, { config })).rejects.toThrow('EADDRINUSE');
    const [refused] = await once(netConnect(port, address), 'error');
    expect(refused).toMatchObject({ code: 'ECONNREFUSED' });
    await rm(folder, { recursive: true });
  });

  test('answer operators only with the token, but health to anybody', async () => {
    const anonymous = createClient(HostService, fixture.channel);
    expect(await failureOf(anonymous.listHosts({}))).toMatchObject({ reason: 'TOKEN_MISSING' });
    const headers = { authorization: 'Bearer rwa1.guess' };
    expect(await failureOf(anonymous.listHosts({}, { headers }))).toMatchObject({
      kind: 'unauthenticated',
      reason: 'TOKEN_WRONG',
    });
    const health = createClient(Health, fixture.channel);
    expect((await health.check({})).status).toBe(ServingStatus.SERVING);
    expect((await health.check({ service: HostService.typeName })).status).toBe(
      ServingStatus.SERVING,
    );
  });
});

describe('an agent', () => {
  test('joins with nothing but a token, and is known by its certificate from then on', async () => {
    const { controlPlane, racks } = fixture;
    await racks.createRack({ rackId: 'r1' });
    const { token } = await racks.createJoinToken({ rack: 'racks/r1' });
    const { caSha256 = '', secretPart = '' } = parseJoinToken(token) ?? {};
    const port = controlPlane.operatorsPort;
    const probe = { host: '127.0.0.1', port, sha256: caSha256, timeoutMs: 5_000, clock };
    const caPem = await fetchPinnedCertificate(probe);

    const enrolment = connect({ target: `127.0.0.1:${port}`, caPem });
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const publicKeyDer = publicKey.export({ type: 'spki', format: 'der' });
    const nonce = randomBytes(16);
    const issued = await createClient(agent.EnrolmentService, enrolment).issueCertificate({
      publicKey: publicKeyDer,
      nonce,
      signature: signCertificateProof(privateKey, publicKeyDer, nonce),
      joinToken: secretPart,
    });
    enrolment.close();
    expect(issued).toMatchObject({ rack: 'racks/r1', agentEndpoint: 'cp.example:7441' });
    expect(issued.caCertificatePem).toBe(caPem);

    const own = {
      privateKeyPem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      certificateChainPem: issued.certificatePem,
    };
    const target = `127.0.0.1:${controlPlane.agentsPort}`;
    const channel = connect({ target, caPem, own });
    const hello = { journal: { id: 'j1', generation: 1n }, agentVersion: 'test' };
    const requests = async function* () {
      yield { message: { case: 'hello', value: hello } } as const;
      await new Promise(() => undefined);
    };
    const session = createClient(agent.AgentService, channel).session(requests());
    for await (const { message } of session) {
      expect(message.case).toBe('welcome');
      expect((await racks.getRack({ name: 'racks/r1' })).status?.agentConnected).toBe(true);
      break;
    }
    channel.close();

    const stranger = connect({ target, caPem });
    const refused = createClient(Health, stranger).check({});
    expect((await failureOf(refused)).kind).toBe('unavailable');
    stranger.close();
  });
});

describe('a new identity', () => {
  test('is refused beside a store that has state, at this start and at the next', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'rackwright-cp-'));
    const disk = new MemoryDisk();
    const open = () => openMemoryStore({ random: nodeRandom(), disk });
    const before = await open();
    for (const id of ['r1', 'r2', 'r3']) {
      await before.put(`racks.${id}`, new Uint8Array(0), 'absent');
    }
    await before.close();
    for (let start = 1; start <= 2; start += 1) {
      const { store, cost } = countedStore(await open());
      await expect(startOn(folder, store)).rejects.toThrow('--accept-new-identity');
      expect(cost.rows, 'however much state there is').toBe(1);
    }
    await rm(folder, { recursive: true });
  });
});
