/**
 * An agent that reads nothing of what it is told, so that nothing can be told to it: it is out at
 * once all the same, and its successor is in.
 */
import { type ClientHttp2Stream, connect as dial } from 'node:http2';
import { create, toBinary } from '@bufbuild/protobuf';
import { agent } from '@rackwright/messages';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { enrol, type Request } from '../bench/agents/lean-agent.ts';
import { AgentStream, HostileSite } from './hostile-agent-site.ts';

let site: HostileSite;

beforeAll(async () => {
  site = await HostileSite.start();
});
afterAll(() => site.stop());

/** A's stream whose window is shut: not a byte of a message gets through to it. */
class DeafStream {
  readonly #stream: ClientHttp2Stream;
  readonly closed: Promise<void>;

  constructor() {
    const { caPem: ca, certificatePem: cert, privateKeyPem: key } = site.a;
    const settings = { initialWindowSize: 0 };
    const tls = { ca, cert, key, servername: 'localhost' };
    const session = dial(`https://127.0.0.1:${site.port}`, { ...tls, settings });
    session.on('error', () => undefined);
    this.#stream = session.request({
      ...{ ':method': 'POST', ':path': '/rackwright.agent.v1.AgentService/Session' },
      ...{ 'content-type': 'application/grpc', te: 'trailers' },
    });
    this.#stream.on('error', () => undefined);
    this.closed = new Promise((resolve) => {
      this.#stream.on('close', () => {
        session.destroy();
        resolve();
      });
    });
  }

  send(message: Request): void {
    const request = create(agent.SessionRequestSchema, { message });
    const bytes = toBinary(agent.SessionRequestSchema, request);
    const head = Buffer.alloc(5);
    head.writeUInt32BE(bytes.length, 1);
    this.#stream.write(Buffer.concat([head, bytes]));
  }

  tell(poweredOn: boolean): void {
    const value = { observations: { poweredOn } };
    const result = { case: 'hostUpdated' as const, value };
    this.send({ case: 'report', value: { hostUid: site.aHostUid, result } });
  }
}

const isConnected = async () => {
  const { status } = await site.fixture.racks.getRack({ name: 'racks/alpha' });
  return status?.agentConnected === true;
};

const isOn = async () => {
  const { status } = await site.fixture.hosts.getHost({ name: 'hosts/alpha-one' });
  return status?.poweredOn === true;
};

test('an agent that reads nothing is out when its key is revoked, and another box comes in', {
  timeout: 60_000,
}, async () => {
  const { racks, channel } = site.fixture;
  const deaf = new DeafStream();
  deaf.send({
    case: 'hello',
    value: { journal: site.nextJournal(), operationKinds: ['verifyAccess'] },
  });
  await expect.poll(isConnected, { message: 'it is connected' }).toBe(true);
  // More than the buffers of a stream hold, so that nothing more goes out.
  for (let sequence = 1n; sequence <= 60n; sequence += 1n) {
    deaf.send({ case: 'heartbeat', value: { sequence } });
  }
  deaf.tell(true);
  await expect.poll(isOn, { message: 'the host is on' }).toBe(true);
  await racks.revokeAgent({ name: 'racks/alpha', reason: 'stolen' });
  await expect.poll(isConnected, { message: 'it is connected' }).toBe(false);
  deaf.tell(false);
  const { token } = await racks.createJoinToken({ rack: 'racks/alpha' });
  const successor = new AgentStream(site.port, await enrol(channel, token));
  successor.hello({ id: 'successor', generation: 1n });
  expect(await successor.settled()).toBe(true);
  // What it said after it was out has not been accepted.
  expect(await isOn()).toBe(true);
  await deaf.closed;
  expect(await successor.settled()).toBe(true);
  successor.stream.cut();
});
