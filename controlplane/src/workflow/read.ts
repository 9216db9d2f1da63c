/** Reading a workflow together with the host that it belongs to. */
import { notFound, store as wire } from '@rackwright/messages';
import type { Random } from '@rackwright/platform';
import {
  type ExpectedRevision,
  type StateStore,
  type StoreRevision,
  storeKey,
} from '@rackwright/store';
import type { Hosts } from '../host/index.ts';
import { isStoreUnavailable, readRecord } from '../records/index.ts';
import type { ReconciledWorkflow, Workflows } from './loop.ts';
import { type WorkflowId, workflowKey, workflowName } from './names.ts';
import { belongsTo } from './view.ts';

/** The dependencies of requests for workflows. */
export interface RequestDependencies {
  readonly store: StateStore;
  readonly random: Random;
  readonly clock: { nowMs(): number };
  readonly hosts: Pick<Hosts, 'request'>;
  readonly workflows: Pick<Workflows, 'reconcile' | 'oneAtATime'>;
}

export interface ReadHost {
  readonly host: wire.HostRecord;
  readonly hostRevision: StoreRevision;
}

/** The host, and its workflow if there is one. Throws `notFound` without a host. */
export async function readWorkflow(
  { store }: Pick<RequestDependencies, 'store'>,
  id: WorkflowId,
): Promise<
  ReadHost & {
    /** Undefined also where the workflow belongs to an earlier host of that name. */
    readonly kept: ReconciledWorkflow | undefined;
    readonly expectedRevision: ExpectedRevision;
  }
> {
  const host = await readRecord(store, wire.HostRecordSchema, storeKey('hosts', id.hostId));
  if (host === undefined) throw notFound(`hosts/${id.hostId}`);
  const found = await readRecord(store, wire.WorkflowRecordSchema, workflowKey(id));
  const mine = found !== undefined && belongsTo(found.record, host.record.host);
  return {
    host: host.record,
    hostRevision: host.revision,
    kept: mine ? found : undefined,
    expectedRevision: found?.revision ?? 'absent',
  };
}

/** The workflow, which must exist. Throws `notFound`. */
export async function existingWorkflow(
  deps: Pick<RequestDependencies, 'store'>,
  id: WorkflowId,
): Promise<ReconciledWorkflow & ReadHost> {
  const { kept, host, hostRevision } = await readWorkflow(deps, id);
  if (kept === undefined) throw notFound(workflowName(id));
  return { ...kept, host, hostRevision };
}

/**
 * The workflow after a pass. The request itself is already stored: if the pass fails, for example
 * because the host changes all the time, the loop retries it. Throws `notFound` when the workflow
 * is gone.
 */
export async function reconciledWorkflow(
  deps: RequestDependencies,
  id: WorkflowId,
): Promise<ReconciledWorkflow> {
  const reconciled = await deps.workflows.reconcile(id).catch((error: unknown) => {
    if (isStoreUnavailable(error)) throw error;
    return existingWorkflow(deps, id);
  });
  if (reconciled === undefined) throw notFound(workflowName(id));
  return reconciled;
}
