/**
 * Attempts that ended without a report: by a deadline, or with their run. A later report is
 * recorded in the timeline once and changes nothing (H3, R7). Pure.
 */

import type { OperationId } from '@rackwright/messages';
import type { Pass } from '../pass/pass.ts';
import { cancelOperation } from './operation.ts';

/** The most such operations of a host; reports of older ones are still answered. */
const openMax = 4;

/** The operation in progress is given up, without a report. */
export function noteOpenOperation({ record }: Pick<Pass, 'record'>): void {
  const { operation, sentTo } = record.operation ?? {};
  if (operation === undefined || sentTo === undefined) return;
  const others = record.openOperations.filter((id) => id !== operation.id);
  record.openOperations = [...others, operation.id].slice(-openMax);
}

/** Its report has come. True: the operation was given up before. */
export function closeOpen({ record }: Pick<Pass, 'record'>, operationId: OperationId): boolean {
  const { openOperations } = record;
  if (!openOperations.includes(operationId)) return false;
  record.openOperations = openOperations.filter((id) => id !== operationId);
  return true;
}

/** Its time is over: the agent has to stop it, and its report is late. */
export function giveUpOperation(pass: Pass): void {
  cancelOperation(pass);
  noteOpenOperation(pass);
}
