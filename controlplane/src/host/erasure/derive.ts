/**
 * Values that two replicas must derive alike: seeds come from hashes, never from chance.
 */

import { createHash } from 'node:crypto';
import type { OperationId } from '@rackwright/messages';

/** 32 bytes from which an operation's challenge places follow. */
export function challengeSeed(incarnation: string, operationId: OperationId): Uint8Array {
  return createHash('sha256').update(`challenge\0${incarnation}\0${operationId}`).digest();
}
