/**
 * The state that survives a runner's own crash within one boot, as bytes for a file in /run: the
 * operation at work and its stage, final reports that the agent does not have yet, ids it has, and
 * a hand-off on its way.
 *
 * Invariant: a record of another boot is no record. Its operations ended with that boot, and the
 * agent knows so by the boot id.
 */
import { fromBinary, fromJsonString, toBinary, toJsonString } from '@bufbuild/protobuf';
import { type BootId, type OperationId } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';

/** Ids of operations whose final report the agent has; older ones are dropped. */
export const receivedIdsMax = 256;

export interface FinishedOperation {
  readonly operationId: OperationId;
  readonly report: agent.Report;
  readonly evidence?: agent.StepEvidence;
}

export interface RunnerRecord {
  readonly outstanding?: { readonly operationId: OperationId; readonly progress: string };
  readonly finished: readonly FinishedOperation[];
  readonly receivedIds: readonly string[];
  /** A step that was reported complete and acts once it may; `acting`: it has been begun. */
  readonly handOff?: {
    readonly operationId: OperationId;
    readonly order: agent.RunStep;
    readonly acting: boolean;
  };
}

export const emptyRecord: RunnerRecord = { finished: [], receivedIds: [] };

interface StoredRecord {
  bootId: BootId;
  outstanding?: { operationId: OperationId; progress: string };
  finished: { operationId: OperationId; report: string; evidence?: string }[];
  receivedIds: string[];
  handOff?: { operationId: OperationId; order: string; acting: boolean };
}

export function encodeRecord(record: RunnerRecord, bootId: BootId): Uint8Array {
  const stored: StoredRecord = {
    bootId,
    ...(record.outstanding === undefined ? {} : { outstanding: record.outstanding }),
    finished: record.finished.map(({ operationId, report, evidence }) => ({
      operationId,
      report: toJsonString(agent.ReportSchema, report),
      ...(evidence === undefined
        ? {}
        : { evidence: base64(toBinary(agent.StepEvidenceSchema, evidence)) }),
    })),
    receivedIds: record.receivedIds.slice(-receivedIdsMax),
    ...(record.handOff === undefined ? {} : { handOff: encodeHandOff(record.handOff) }),
  };
  return new TextEncoder().encode(`${JSON.stringify(stored)}\n`);
}

/** Throws when the bytes are damaged: a runner that does not know its own acts must not go on. */
export function decodeRecord(bytes: Uint8Array | undefined, bootId: BootId): RunnerRecord {
  if (bytes === undefined) return emptyRecord;
  let stored: StoredRecord;
  try {
    stored = JSON.parse(new TextDecoder().decode(bytes));
  } catch (cause) {
    throw new Error('the record of this boot is damaged; restart the machine', { cause });
  }
  if (stored.bootId !== bootId) return emptyRecord;
  return {
    ...(stored.outstanding === undefined ? {} : { outstanding: stored.outstanding }),
    finished: stored.finished.map(({ operationId, report, evidence }) => ({
      operationId,
      report: fromJsonString(agent.ReportSchema, report),
      ...(evidence === undefined
        ? {}
        : { evidence: fromBinary(agent.StepEvidenceSchema, Buffer.from(evidence, 'base64')) }),
    })),
    receivedIds: stored.receivedIds,
    ...(stored.handOff === undefined ? {} : { handOff: decodeHandOff(stored.handOff) }),
  };
}

function encodeHandOff({ order, ...rest }: NonNullable<RunnerRecord['handOff']>) {
  return { ...rest, order: base64(toBinary(agent.RunStepSchema, order)) };
}

function decodeHandOff({ order, ...rest }: NonNullable<StoredRecord['handOff']>) {
  return { ...rest, order: fromBinary(agent.RunStepSchema, Buffer.from(order, 'base64')) };
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}
