/**
 * Answers that are made once. An answer to a known question differs from the one before in the
 * number of the transaction alone.
 */
import { type DhcpPacket, encodeDhcp } from './packet.ts';

/** By the identity of the answer: an entry goes when its answer is collected. */
const encoded = new WeakMap<DhcpPacket, Uint8Array>();

/** The offset of a packet's transaction id (RFC 951). */
const transactionIdAt = 4;

/** The bytes of an answer to the question of this transaction; the caller's. Throws EncodeError. */
export function encodeAnswer(packet: DhcpPacket, transactionId: number): Uint8Array {
  let bytes = encoded.get(packet);
  if (bytes === undefined) {
    bytes = encodeDhcp(packet);
    encoded.set(packet, bytes);
  }
  const own = bytes.slice();
  for (let index = 0; index < 4; index += 1) {
    own[transactionIdAt + index] = (transactionId >>> (24 - 8 * index)) & 0xff;
  }
  return own;
}
