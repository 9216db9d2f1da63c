/** The brakes of a rack, and the acceptance that lets its agent work for an older store. */
import { clone, create, equals } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  FreezeSchema,
  failedPrecondition,
  notFound,
  type Rack,
  type RackStatus,
  RackStatusSchema,
  type RequestId,
  store as wire,
} from '@rackwright/messages';
import { storeKey } from '@rackwright/store';
import { nameProblem, requireName } from '../call/names.ts';
import type { RpcDependencies } from '../call/ports.ts';
import { checkReason, checkRequestId } from '../call/texts.ts';
import { Violations } from '../call/violations.ts';
import {
  appliedId,
  hasApplied,
  readRecord,
  untilWritten,
  withApplied,
  writeRecord,
} from '../records/index.ts';
import { reasonMissing } from './fleet.ts';

export interface BrakeCall {
  readonly name: string;
  readonly reason: string;
  readonly requestId: RequestId;
}

/** The result of a change of a rack's record. */
export interface ChangedRack {
  readonly record: wire.RackRecord;
  readonly revision: number;
}

export function freezeRack(deps: RpcDependencies, call: BrakeCall): Promise<ChangedRack> {
  return changeRack(deps, call, 'freeze', ({ status }) => {
    if (call.reason === '') throw reasonMissing();
    status.freeze ??= create(FreezeSchema, {
      by: deps.actor,
      reason: call.reason,
      at: timestampFromMs(deps.clock.nowMs()),
    });
  });
}

export function thawRack(deps: RpcDependencies, call: BrakeCall): Promise<ChangedRack> {
  return changeRack(deps, call, 'thaw', ({ status }) => {
    if (status.freeze === undefined) {
      const instead =
        'what a host waits for is told by `rackwright host explain HOST`, and a frozen fleet is ' +
        'thawed by `rackwright fleet thaw --reason WHY`.';
      throw failedPrecondition('NOT_FROZEN', `${call.name} is not frozen; ${instead}`);
    }
    delete status.freeze;
  });
}

/** The person accepts the loss of data that the agent has seen beyond this store. */
export function acceptRestoredStore(deps: RpcDependencies, call: BrakeCall): Promise<ChangedRack> {
  return changeRack(deps, call, 'acceptStore', ({ status, record }) => {
    const { restoredStore } = status;
    if (restoredStore === undefined) {
      const message =
        `The agent of ${call.name} has seen nothing that this store lacks, so that there is ` +
        'nothing to accept; what its hosts wait for is told by `rackwright host explain HOST`.';
      throw failedPrecondition('NOT_RESTORED', message);
    }
    record.incarnation = deps.store.incarnation;
    record.acceptedStore = create(agent.StoreAcceptedSchema, {
      incarnation: deps.store.incarnation,
      revision: restoredStore.revision,
      by: deps.actor,
    });
    delete status.restoredStore;
  });
}

/** A copy of a rack's record, for changes. */
export interface RackDraft {
  readonly rack: Rack;
  readonly status: RackStatus;
  readonly record: wire.RackRecord;
}

/** Reads, changes, writes; a repeated request id gets its response without a change. */
export async function changeRack(
  deps: RpcDependencies,
  { name, reason, requestId }: BrakeCall,
  method: string,
  apply: (draft: RackDraft) => void,
): Promise<ChangedRack> {
  const violations = new Violations();
  violations.addIf('name', nameProblem('racks', name));
  checkReason('reason', reason, violations);
  checkRequestId(requestId, violations);
  violations.throwIfAny();
  const key = storeKey('racks', requireName('racks', name));
  const id = appliedId(method, requestId);
  return untilWritten(name, async () => {
    const kept = await readRecord(deps.store, wire.RackRecordSchema, key);
    if (kept?.record.rack === undefined) throw notFound(name);
    if (hasApplied(kept.record, id)) return kept;
    const record = clone(wire.RackRecordSchema, kept.record);
    const { rack } = record;
    if (rack === undefined) throw notFound(name);
    rack.status ??= create(RackStatusSchema);
    apply({ rack, status: rack.status, record });
    // An unchanged record is not written only to store the call's id.
    if (equals(wire.RackRecordSchema, kept.record, record)) return kept;
    record.requestIds = withApplied(record.requestIds, id);
    rack.updateTime = timestampFromMs(deps.clock.nowMs());
    const written = await writeRecord(deps, wire.RackRecordSchema, key, record, kept.revision);
    if (written.kind === 'conflict') return undefined;
    deps.log.info({ rack: name, actor: deps.actor, reason }, method);
    return { record, revision: written.revision };
  });
}
