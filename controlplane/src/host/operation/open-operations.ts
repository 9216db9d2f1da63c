/**
 * Attempts that ended without a word of their own: by a deadline, or with their run. What they say
 * later is told in the timeline once and changes nothing (H3, R7). Pure.
 */

import type { OperationId } from '@rackwright/messages';
import type { Pass } from '../pass/pass.ts';
import { cancelOperation } from './operation.ts';

/** Operations that a host remembers so; older ones are answered all the same. */
const openMax = 4;

/** The operation in the slot is given up, without an answer. */
export function leaveOpen({ record }: Pick<Pass, 'record'>): void {
  const { operation, sentTo } = record.operation ?? {};
  if (operation === undefined || sentTo === undefined) return;
  const others = record.openOperations.filter((id) => id !== operation.id);
  record.openOperations = [...others, operation.id].slice(-openMax);
}

/** Its word has come; whether it was waited for no longer. */
export function closeOpen({ record }: Pick<Pass, 'record'>, operationId: OperationId): boolean {
  const { openOperations } = record;
  if (!openOperations.includes(operationId)) return false;
  record.openOperations = openOperations.filter((id) => id !== operationId);
  return true;
}

/** Its time is over: the agent shall stop it, and what it says is late. */
export function giveUpOperation(pass: Pass): void {
  cancelOperation(pass);
  leaveOpen(pass);
}
