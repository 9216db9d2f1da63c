/**
 * Values that two replicas must derive equally: seeds come from hashes, never from random numbers.
 */

import { createHash } from 'node:crypto';
import type { Incarnation, OperationId } from '@rackwright/messages';

/** 32 bytes that determine an operation's challenge locations. */
export function challengeSeed(incarnation: Incarnation, operationId: OperationId): Uint8Array {
  return createHash('sha256').update(`challenge\0${incarnation}\0${operationId}`).digest();
}
