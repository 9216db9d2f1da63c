/**
 * The other end of the wire for tests: a gRPC server with a self-signed certificate that checks a
 * runner's Hello and then follows the test's script. It speaks the protocol, nothing of the agent.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { quietLog } from '@rackwright/platform/testing';
import 'reflect-metadata';
import { createPublicKey, verify, webcrypto } from 'node:crypto';
import { inspect } from 'node:util';
import {
  BasicConstraintsExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { bind, type OperationId, sha256Hex } from '@rackwright/messages';
import type * as agent from '@rackwright/messages/agent';
import * as runner from '@rackwright/messages/runner';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { type Result, resultFromWire } from '@rackwright/results';
import { serve } from '@rackwright/rpc';

export interface Heard {
  readonly hellos: runner.Hello[];
  readonly results: { operationId: OperationId; result: Result | { kind: 'unsupported' } }[];
  readonly evidence: agent.StepEvidence[];
  readonly logs: runner.StepLog[];
  readonly questions: runner.AskToBegin[];
}

export interface TestAgent {
  readonly port: number;
  readonly fingerprint: string;
  readonly heard: Heard;
  /** From the next session on the test answers whether something may begin. */
  answerBegin(): void;
  /** Sends to the connected runner; waits for one. */
  send(message: runner.SessionResponse['message']): Promise<void>;
  /** Ends the runner's stream. */
  hangUp(): void;
  /** Waits until a received message satisfies the test. */
  until<T>(found: (heard: Heard) => T | undefined): Promise<T>;
  close(): Promise<void>;
}

const waitMs = 60_000;
const pollMs = 10;

async function untilFound<T>(
  heard: Heard,
  found: () => T | undefined,
  awaited: unknown,
): Promise<T> {
  const endMs = Date.now() + waitMs;
  for (;;) {
    const value = found();
    if (value !== undefined) return value;
    if (Date.now() > endMs) throw new Error(waitedInVain(awaited, heard));
    await pause(pollMs);
  }
}

/** `imageEndpoint`: where images are served, as "host:port". */
export async function startTestAgent(bootToken: string, imageEndpoint = ''): Promise<TestAgent> {
  const certificate = await makeCertificate();
  const heard: Heard = { hellos: [], results: [], evidence: [], logs: [], questions: [] };
  let outgoing: runner.SessionResponse['message'][] | undefined;
  let hungUp = false;
  let answersBegin = false;
  const nonce = nodeRandom().bytes(32);
  async function* session(requests: AsyncIterable<runner.SessionRequest>) {
    const mine: runner.SessionResponse['message'][] = [];
    yield { message: { case: 'challenge' as const, value: { nonce } } };
    const incoming = requests[Symbol.asyncIterator]();
    const hello = (await incoming.next()).value?.message;
    if (hello?.case !== 'hello' || !isProved(hello.value, nonce, bootToken)) {
      yield { message: { case: 'refused' as const, value: { message: 'not proved' } } };
      return;
    }
    heard.hellos.push(hello.value);
    const value = { runnerSession: 'rs', hostName: 'h', answersBegin, imageEndpoint };
    yield { message: { case: 'accepted' as const, value } };
    outgoing = mine;
    hungUp = false;
    const stream = { isOver: false };
    // However the stream ends, it is over; a runner that is killed breaks it.
    void read(incoming, heard)
      .finally(() => (stream.isOver = true))
      .catch(() => undefined);
    while (!stream.isOver && !hungUp) {
      for (const message of mine.splice(0)) yield { message };
      await pause(pollMs);
    }
    outgoing = undefined;
  }

  const server = await serveRunner(session, certificate);
  const until = <T>(found: () => T | undefined, awaited: unknown = found) =>
    untilFound(heard, found, awaited);
  return {
    port: server.port,
    fingerprint: certificate.fingerprint,
    heard,
    send: async (message) => {
      (await until(() => outgoing)).push(message);
    },
    answerBegin: () => {
      answersBegin = true;
    },
    hangUp: () => {
      hungUp = true;
    },
    until: (found) => until(() => found(heard), found),
    close: () => server.close(),
  };
}

type Session = (
  requests: AsyncIterable<runner.SessionRequest>,
) => AsyncIterable<MessageInitShape<typeof runner.SessionResponseSchema>>;

function serveRunner(session: Session, tls: Awaited<ReturnType<typeof makeCertificate>>) {
  return serve({
    address: '127.0.0.1',
    port: 0,
    tls,
    services: [
      bind(runner.RunnerService, {
        session: (requests) => session(requests),
        exchange: async function* () {
          yield { message: { case: 'refused', value: 'no bytes are exchanged here' } };
        },
      }),
    ],
    log: quietLog,
    clock: nodeClock(),
    random: nodeRandom(),
    limits: { closeGraceMs: 100 },
  });
}

async function read(incoming: AsyncIterator<runner.SessionRequest>, heard: Heard): Promise<void> {
  for (;;) {
    const next = await incoming.next();
    if (next.done === true) return;
    const { message } = next.value;
    if (message.case === 'stepLog') heard.logs.push(message.value);
    if (message.case === 'askToBegin') heard.questions.push(message.value);
    if (message.case === 'evidence') heard.evidence.push(message.value);
    if (message.case !== 'report') continue;
    const { operationId } = message.value;
    heard.results.push({ operationId, result: resultFromWire(message.value) });
  }
}

function isProved(hello: runner.Hello, nonce: Uint8Array, bootToken: string): boolean {
  const label = Buffer.from('rackwright-runner-hello\0');
  const signed = Buffer.concat([label, nonce, Buffer.from(bootToken)]);
  const der = Buffer.from(hello.publicKey);
  const key = createPublicKey({ key: der, format: 'der', type: 'spki' });
  return hello.bootToken === bootToken && verify('sha256', signed, key, hello.signature);
}

/** Like an agent's boot certificate: no CA, a name instead of an address, no dates to speak of. */
async function makeCertificate() {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: '4711',
    name: 'CN=rackwright-agent',
    notBefore: new Date('1970-01-01T00:00:00Z'),
    notAfter: new Date('9999-12-31T23:59:59Z'),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new SubjectAlternativeNameExtension([{ type: 'dns', value: 'rackwright-agent' }]),
    ],
  });
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey));
  const body = pkcs8.toString('base64');
  return {
    privateKeyPem: `-----BEGIN PRIVATE KEY-----\n${body}\n-----END PRIVATE KEY-----\n`,
    certificateChainPem: certificate.toString('pem'),
    fingerprint: sha256Hex(new Uint8Array(certificate.rawData)),
  };
}

/** The awaited message, by the waiting code, and the one that arrived instead. */
function waitedInVain(awaited: unknown, heard: Heard): string {
  return `${String(awaited)} did not hold within ${waitMs} ms; heard: ${inspect(heard)}`;
}

function pause(delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, delayMs);
  });
}
