/**
 * Who comes to the wrong door, in old clothes or with somebody else's papers: the two ports of a
 * control plane over real TLS. Each refusal stands beside what is let in, so that none of them is
 * only a client that does not work.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect as connectPlain } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import {
  type ConnectionOptions,
  connect as connectTls,
  createServer as createTlsServer,
  type SecureVersion,
  type Server,
} from 'node:tls';
import type { Fixture } from '@rackwright/controlplane/testing';
import { startFixture } from '@rackwright/controlplane/testing';
import { ApiFailure, agent } from '@rackwright/messages';
import { connect, createClient, operatorClients } from '@rackwright/rpc';
import { selfSigned } from '@rackwright/sim/loopback';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Credentials, enrol, LeanStream, type Message } from '../bench/agents/lean-agent.ts';
import { listenOnLoopback } from './loopback.ts';

const command = join(import.meta.dirname, '../../packages/cli/src/main.ts');

let fixture: Fixture;
let credentials: Credentials;
const closers: (() => void)[] = [];

beforeAll(async () => {
  fixture = await startFixture();
  await fixture.racks.createRack({ rackId: 'r1' });
  const { token } = await fixture.racks.createJoinToken({ rack: 'racks/r1' });
  credentials = await enrol(fixture.channel, token);
});

afterAll(async () => {
  for (const close of closers) close();
  await fixture.stop();
});

const ports = () => {
  const { operatorsPort, agentsPort } = fixture.controlPlane;
  return [
    ['operators', operatorsPort],
    ['agents', agentsPort],
  ] as const;
};

const caPem = () => fixture.controlPlane.identity.caCertificatePem;
const agentPapers = () => ({
  privateKeyPem: credentials.privateKeyPem,
  certificateChainPem: credentials.certificatePem,
});
const serverPapers = () => fixture.controlPlane.identity.authorities.now.server.tls;

function channelTo(port: number, own?: ReturnType<typeof agentPapers>) {
  const papers = own === undefined ? {} : { own };
  const channel = connect({ target: `127.0.0.1:${port}`, caPem: caPem(), ...papers });
  closers.push(() => channel.close());
  return channel;
}

async function kindOf(call: Promise<unknown>): Promise<string> {
  const error = await call.then(
    () => 'let in',
    (thrown: unknown) => thrown,
  );
  return error instanceof ApiFailure ? error.error.kind : String(error);
}

describe('an agent at the operators’ port', () => {
  test('is nobody there, whatever certificate it shows', async () => {
    const { operatorsPort } = fixture.controlPlane;
    const channel = channelTo(operatorsPort, agentPapers());
    const { racks, hosts, credentials: secrets } = operatorClients(channel, '');
    for (const call of [
      racks.listRacks({}),
      racks.createJoinToken({ rack: 'racks/r1', replaceAgent: true }),
      hosts.listHosts({}),
      secrets.listCredentials({}),
    ]) {
      expect(await kindOf(call)).toBe('unauthenticated');
    }
    const withToken = operatorClients(channel, fixture.token);
    expect((await withToken.racks.listRacks({})).racks).toHaveLength(1);
  });
});

describe('an operator at the agents’ port', () => {
  test('is not let in by a token, not even by the first administrator’s', async () => {
    const { agentsPort } = fixture.controlPlane;
    const { racks } = operatorClients(channelTo(agentsPort), fixture.token);
    expect(await kindOf(racks.listRacks({}))).toBe('unavailable');
  });

  test('finds no service of operators there behind an agent’s certificate', async () => {
    const { agentsPort } = fixture.controlPlane;
    const channel = channelTo(agentsPort, agentPapers());
    const { racks, hosts } = operatorClients(channel, fixture.token);
    expect(await kindOf(racks.listRacks({}))).toBe('unimplemented');
    expect(await kindOf(hosts.listHosts({}))).toBe('unimplemented');
    const enrolment = createClient(agent.EnrolmentService, channel);
    expect(await kindOf(enrolment.issueCertificate({}))).toBe('unimplemented');
    // The agent is let in by it, to what is an agent's.
    const welcome = Promise.withResolvers<string | undefined>();
    const hear = (message: Message): void => welcome.resolve(message.case);
    const stream = new LeanStream(agentsPort, credentials, hear);
    stream.send({ case: 'hello', value: { journal: { id: 'j1', generation: 1n } } });
    expect(await welcome.promise).toBe('welcome');
    stream.cut();
  });
});

describe('a certificate of the right authority for another purpose', () => {
  test('a certificate that is the control plane’s own opens no session as an agent', async () => {
    const { agentsPort } = fixture.controlPlane;
    expect(await shakeHands(agentsPort, keyOf(agentPapers()))).toBe('TLSv1.3');
    expect(await shakeHands(agentsPort, keyOf(serverPapers()))).not.toMatch(/^TLS/);
    expect(await shakeHands(agentsPort, {})).not.toMatch(/^TLS/);
  });

  test('a certificate of an agent is no control plane’s for operators and agents', async () => {
    const posing = await tlsServer(keyOf(agentPapers()));
    const real = await tlsServer(keyOf(serverPapers()));
    const asks = (port: number) => shakeHands(port, { rejectUnauthorized: true });
    expect(await asks(posing)).toMatch(/unsuitable certificate purpose/);
    // The real one's certificate gets as far as its name.
    expect(await asks(real)).toMatch(/^TLSv1.3$|altnames/i);
    const { racks } = operatorClients(channelTo(posing), fixture.token);
    expect(await kindOf(racks.listRacks({}))).toBe('unavailable');
  });
});

describe('a server that poses as the control plane', () => {
  test('hears nothing of the command, whose token stays where it is', async () => {
    const { keyPem, certificatePem } = await selfSigned('rackwright', '127.0.0.1');
    const heard: Buffer[] = [];
    const server = createTlsServer({ key: keyPem, cert: certificatePem, ALPNProtocols: ['h2'] });
    server.on('secureConnection', (socket) => {
      socket.on('error', () => undefined);
      socket.on('data', (part) => {
        heard.push(part);
        socket.destroy();
      });
    });
    closers.push(() => server.close());
    const port = await listenOnLoopback(server);
    const refused = await rackList(port, caPem());
    expect(refused.code).toBe(6);
    expect(refused.err).not.toContain(fixture.token);
    expect(Buffer.concat(heard)).toHaveLength(0);
    // To the one that its operator trusts, the same command speaks.
    expect((await rackList(port, certificatePem)).code).toBe(6);
    expect(Buffer.concat(heard).length).toBeGreaterThan(0);
    const { operatorsPort } = fixture.controlPlane;
    expect(await rackList(operatorsPort, caPem())).toMatchObject({ code: 0, err: '' });
  });
});

describe('on every port of the control plane', () => {
  test('plain text gets no answer but an alert and the end of the connection', async () => {
    for (const [name, port] of ports()) {
      for (const text of [
        'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
        'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
      ]) {
        const answer = await answerTo(port, text);
        expect(answer.length, name).toBeLessThanOrEqual(7);
        expect([undefined, tlsAlert], name).toContain(answer[0]);
      }
    }
  });

  test.each<SecureVersion>(['TLSv1', 'TLSv1.1', 'TLSv1.2'])('%s is refused', async (version) => {
    const old = { minVersion: version, maxVersion: version, ciphers: 'DEFAULT@SECLEVEL=0' };
    // The very client that is refused speaks that version where it is taken.
    const lax = await tlsServer({ ...keyOf(serverPapers()), ...old });
    expect(await shakeHands(lax, old)).toBe(version);
    for (const [name, port] of ports()) {
      const papers = keyOf(agentPapers());
      expect(await shakeHands(port, { ...papers, ...old }), name).toMatch(/protocol version/i);
      expect(await shakeHands(port, papers), name).toBe('TLSv1.3');
    }
  });
});

/** RFC 8446 §5.1. */
const tlsAlert = 21;

function keyOf({ privateKeyPem, certificateChainPem }: ReturnType<typeof agentPapers>) {
  return { key: privateKeyPem, cert: certificateChainPem };
}

async function tlsServer(options: object): Promise<number> {
  const server: Server = createTlsServer({ ...options, ALPNProtocols: ['h2'] });
  server.on('secureConnection', (socket) => socket.on('error', () => undefined).write('\n'));
  closers.push(() => server.close());
  return listenOnLoopback(server);
}

/**
 * The version of TLS that both agreed on, once the server has said something: in TLS 1.3 a client
 * hears only then that its certificate was refused. Otherwise the words of the failure.
 */
function shakeHands(port: number, options: ConnectionOptions): Promise<string> {
  return new Promise((resolve) => {
    const socket = connectTls({
      ...{ host: '127.0.0.1', port, ca: caPem(), ALPNProtocols: ['h2'] },
      ...{ rejectUnauthorized: false, ...options },
    });
    const end = (outcome: string): void => {
      socket.destroy();
      resolve(outcome);
    };
    socket.once('data', () => end(socket.getProtocol() ?? 'no version'));
    socket.once('error', (error) => end(error.message));
    socket.once('close', () => end('closed'));
  });
}

/** The command as an operator has it, with the first administrator's token. */
async function rackList(port: number, ca: string) {
  const folder = mkdtempSync(join(tmpdir(), 'rackwright-doors-'));
  const tokenFile = join(folder, 'token');
  const caFile = join(folder, 'ca.pem');
  writeFileSync(tokenFile, fixture.token, { mode: 0o600 });
  writeFileSync(caFile, ca);
  const where = ['--server', `127.0.0.1:${port}`, '--token-file', tokenFile, '--ca-file', caFile];
  const child = spawn(process.execPath, [command, 'rack', 'list', ...where], {
    env: {},
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(child, 'exit');
  const err = await text(child.stderr);
  const [code] = await ended;
  rmSync(folder, { recursive: true });
  return { code: Number(code), err };
}

function answerTo(port: number, text: string): Promise<Buffer> {
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    const socket = connectPlain(port, '127.0.0.1', () => socket.write(text));
    socket.on('data', (part) => parts.push(part));
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(Buffer.concat(parts)));
  });
}
