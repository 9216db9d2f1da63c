import { expect, test } from 'vitest';
import { decodePacket, encodePacket, type TftpPacket } from './packet.ts';
import {
  decideRequest,
  type RequestDecision,
  type TransferLoad,
  tftpLimitsDefault,
} from './request.ts';

const idle = { all: 0, ofThisClient: 0, unanswered: undefined };

function lookUp(fileName: string) {
  return fileName === 'undionly.kpxe'
    ? ({ kind: 'file', bytes: new Uint8Array(100) } as const)
    : ({ kind: 'refused', code: 1, message: 'no such file' } as const);
}

function decide(packet: TftpPacket | Uint8Array, load: TransferLoad = idle): RequestDecision {
  const datagram = packet instanceof Uint8Array ? packet : encodePacket(packet);
  return decideRequest(datagram, load, tftpLimitsDefault, lookUp);
}

function read(fileName: string, mode = 'octet'): TftpPacket {
  return { kind: 'readRequest', fileName, mode, options: [] };
}

function errorCode(decision: RequestDecision): number | undefined {
  if (decision.kind !== 'refuse') return undefined;
  const packet = decodePacket(decision.reply);
  return packet.kind === 'error' ? packet.code : undefined;
}

test('the server starts a transfer of a file that is there, in any spelling of octet', () => {
  expect(decide(read('undionly.kpxe', 'OCTET'))).toMatchObject({
    kind: 'start',
    fileName: 'undionly.kpxe',
  });
});

test('each refusal has the fitting error code', () => {
  expect(errorCode(decide(read('secret')))).toBe(1);
  expect(errorCode(decide(read('undionly.kpxe', 'netascii')))).toBe(0);
  expect(errorCode(decide({ ...read('x'), kind: 'writeRequest' } as TftpPacket))).toBe(2);
  expect(errorCode(decide(Uint8Array.of(0, 1, 65)))).toBe(4);
  expect(errorCode(decide(new Uint8Array()))).toBe(4);
});

test('errors and strays get no answer, so that two servers cannot talk for ever', () => {
  expect(decide({ kind: 'error', code: 1, message: '' }).kind).toBe('ignore');
  expect(decide(Uint8Array.of(0, 5, 0, 4, 65)).kind).toBe('ignore');
  expect(decide(Uint8Array.of(0, 5)).kind).toBe('ignore');
  expect(decide({ kind: 'ack', block: 1 }).kind).toBe('ignore');
  expect(decide({ kind: 'data', block: 1, bytes: new Uint8Array() }).kind).toBe('ignore');
  expect(decide({ kind: 'optionAck', options: [] }).kind).toBe('ignore');
});

test('a request that is repeated before its answer starts no second transfer', () => {
  const unanswered = encodePacket(read('undionly.kpxe'));
  expect(decide(read('undionly.kpxe'), { ...idle, unanswered }).kind).toBe('ignore');
});

test('the server starts a transfer for another request from the same port', () => {
  const unanswered = encodePacket(read('snponly.efi'));
  expect(decide(read('undionly.kpxe'), { ...idle, unanswered }).kind).toBe('start');
});

test('a client with too many transfers is refused; with no slot left the server is silent', () => {
  const { transfersMax, transfersPerClientMax } = tftpLimitsDefault;
  const greedy = { ...idle, ofThisClient: transfersPerClientMax };
  expect(errorCode(decide(read('undionly.kpxe'), greedy))).toBe(0);
  expect(decide(read('undionly.kpxe'), { ...idle, all: transfersMax }).kind).toBe('ignore');
});
