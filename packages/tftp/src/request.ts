/**
 * What to do with a datagram on the well-known port: start a transfer, refuse, or say nothing.
 *
 * Q1 Nothing is ever written: a write request is an access violation.
 * Q2 The same request from the same port, while the first answer to it is unacknowledged, is the
 *    client's retransmission and starts no second transfer. After an acknowledgement it is a client
 *    that has begun anew (firmware uses its ports again after a reset) and gets a new transfer; the
 *    old one ends by itself.
 * Q3 Over the limit of one client: refused, so that its user sees why. Over the limit of all:
 *    silence, because firmware asks again after silence but gives up on an error.
 */
import { DecodeError } from '@rackwright/bytes';
import { negotiate, type OptionLimits } from './options.ts';
import { decodePacket, encodePacket, isError, type TftpRequest, tftpError } from './packet.ts';
import { type RetryLimits, Transfer } from './transfer.ts';

export interface TftpLimits extends OptionLimits, RetryLimits {
  /** Transfers under way, all clients together. */
  readonly transfersMax: number;
  /** Transfers under way for one address. */
  readonly transfersPerClientMax: number;
}

export const tftpLimitsDefault: TftpLimits = {
  blockBytesMax: 1468,
  windowBlocksMax: 16,
  timeoutSecondsMax: 30,
  retryDelayMs: 1_000,
  retryDelayMsMax: 8_000,
  attemptsMax: 6,
  openingAttemptsMax: 3,
  refusedDelayMs: 200,
  transfersMax: 256,
  transfersPerClientMax: 8,
};

/** Transfers under way, as the decision needs them. */
export interface TransferLoad {
  readonly all: number;
  readonly ofThisClient: number;
  /** The latest request from this very port, while nothing of its answer is acknowledged. */
  readonly unanswered: Uint8Array | undefined;
}

/**
 * The result of a look-up of a name. `refused` carries a {@link tftpError} code; `later`: no answer
 * is sent, and the client asks again.
 */
export type FileLookup =
  | { readonly kind: 'later' }
  | { readonly kind: 'file'; readonly bytes: Uint8Array }
  | { readonly kind: 'refused'; readonly code: number; readonly message: string };

export type RequestDecision =
  | { readonly kind: 'start'; readonly transfer: Transfer; readonly fileName: string }
  | { readonly kind: 'refuse'; readonly reply: Uint8Array; readonly reason: string }
  | { readonly kind: 'ignore'; readonly reason: string };

export function decideRequest(
  datagram: Uint8Array,
  load: TransferLoad,
  limits: TftpLimits,
  resolve: (fileName: string) => FileLookup,
): RequestDecision {
  const request = readRequest(datagram);
  if (request.kind === 'ignore' || request.kind === 'refuse') return request;
  if (load.unanswered !== undefined && sameBytes(load.unanswered, datagram)) {
    return { kind: 'ignore', reason: 'repeated request' };
  }
  if (load.all >= limits.transfersMax) {
    return { kind: 'ignore', reason: `${limits.transfersMax} transfers under way` };
  }
  if (load.ofThisClient >= limits.transfersPerClientMax) {
    const most = limits.transfersPerClientMax;
    return refuse(tftpError.notDefined, `more than ${most} transfers of one client`);
  }
  const found = resolve(request.fileName);
  if (found.kind === 'later') return { kind: 'ignore', reason: 'not here yet' };
  if (found.kind === 'refused') return refuse(found.code, found.message);
  const negotiated = negotiate(request.options, found.bytes.length, limits);
  const transfer = new Transfer(found.bytes, negotiated, limits);
  return { kind: 'start', transfer, fileName: request.fileName };
}

type UnservedRequest = Exclude<RequestDecision, { kind: 'start' }>;

/** The read request in a datagram, or the answer to anything else. */
function readRequest(
  datagram: Uint8Array,
): (TftpRequest & { kind: 'readRequest' }) | UnservedRequest {
  // An error is never answered, not even one that cannot be read.
  if (isError(datagram)) return { kind: 'ignore', reason: 'error outside a transfer' };
  const packet = decodeOrReason(datagram);
  if (typeof packet === 'string') return refuse(tftpError.illegalOperation, packet);
  switch (packet.kind) {
    case 'readRequest': {
      if (packet.mode.toLowerCase() !== 'octet') {
        return refuse(tftpError.notDefined, 'only mode octet is served');
      }
      return { ...packet, kind: 'readRequest' };
    }
    case 'writeRequest':
      return refuse(tftpError.accessViolation, 'files are read only');
    // They have lost their transfer.
    case 'error':
    case 'ack':
    case 'data':
    case 'optionAck':
      return { kind: 'ignore', reason: `${packet.kind} outside a transfer` };
  }
}

function decodeOrReason(datagram: Uint8Array): ReturnType<typeof decodePacket> | string {
  try {
    return decodePacket(datagram);
  } catch (error) {
    if (error instanceof DecodeError) return error.message;
    throw error;
  }
}

function sameBytes(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, index) => byte === other[index]);
}

function refuse(code: number, message: string): RequestDecision & { kind: 'refuse' } {
  const reply = encodePacket({ kind: 'error', code, message });
  return { kind: 'refuse', reply, reason: message };
}
