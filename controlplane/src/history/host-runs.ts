/** The runs of a host: the present one, and the stored ones. */
import { clone, create, toBinary } from '@bufbuild/protobuf';
import {
  type Explanation,
  ExplanationSchema,
  type HostId,
  invalidArgument,
  type ListHostRunsRequest,
  type ListHostRunsResponse,
  ListHostRunsResponseSchema,
  notFound,
  type Run,
  RunPhase,
  RunSchema,
  store as wire,
} from '@rackwright/messages';
import { storeKey } from '@rackwright/store';
import { pageOfItems } from '../call/filtering.ts';
import { hostKey, presentHost } from '../call/host-view.ts';
import { parseName, requireName } from '../call/names.ts';
import type { RpcDependencies } from '../call/ports.ts';
import { explainEndedRun } from '../host/index.ts';
import { orUnavailable, readableOnce, readRecord } from '../records/index.ts';
import { runFields } from './run-fields.ts';

/** One run of a host, present or finished. Throws `notFound`. */
export async function getHostRun(deps: RpcDependencies, name: string): Promise<Run> {
  return (await findRun(deps, parseRunName(name), name)).run;
}

/** Newest first by default. */
export async function listHostRuns(
  deps: RpcDependencies,
  request: ListHostRunsRequest,
): Promise<ListHostRunsResponse> {
  const { store, log } = deps;
  const { parent } = request;
  const { record, present } = await readRuns(deps, requireName('hosts', parent, 'parent'));
  const { entries } = await orUnavailable(store.list(storeKey('runs', record.host?.uid ?? '')));
  const finished = entries.flatMap(
    (entry) => readableOnce({ store, log }, wire.FinishedRunRecordSchema, entry)?.run ?? [],
  );
  const byNumber = new Map([...finished, ...present].map((run) => [run.number, run]));
  const listed = {
    ...{ fields: runFields, items: [[...byNumber.values()]], usually: 'number desc' },
    nameOf: ({ number }: Run) => String(number),
    bytesOf: (run: Run) => toBinary(RunSchema, run).byteLength,
  };
  const { items, nextPageToken } = await pageOfItems(store, listed, request, parent);
  return create(ListHostRunsResponseSchema, { runs: [...items], nextPageToken });
}

/** The present run is explained like its host; a finished run says how it ended. */
export async function explainRun(deps: RpcDependencies, name: string): Promise<Explanation> {
  const id = parseRunName(name);
  const { run, record } = await findRun(deps, id, name);
  if (run.phase === RunPhase.ENDED) {
    return explainEndedRun(record, run, await deps.hosts.usualOf(id.hostId));
  }
  const ofHost = await deps.hosts.explain(id.hostId);
  // It may have ended since it was read.
  if (ofHost === undefined) throw notFound(name);
  const shown = clone(ExplanationSchema, ofHost);
  shown.subject = name;
  return shown;
}

interface RunId {
  readonly hostId: HostId;
  readonly number: bigint;
}

async function findRun(deps: RpcDependencies, { hostId, number }: RunId, name: string) {
  const { record, present } = await readRuns(deps, hostId);
  const here = present.find((run) => run.number === number);
  if (here !== undefined) return { run: here, record };
  const key = storeKey('runs', record.host?.uid ?? '', String(number));
  const kept = await readRecord(deps.store, wire.FinishedRunRecordSchema, key);
  if (kept?.record.run === undefined) throw notFound(name);
  return { run: kept.record.run, record };
}

/** The host with the runs in its record: the present one, and the one that ended last. */
async function readRuns(deps: RpcDependencies, hostId: HostId) {
  const kept = await readRecord(deps.store, wire.HostRecordSchema, hostKey(hostId));
  if (kept === undefined) throw notFound(`hosts/${hostId}`);
  const { record, revision } = kept;
  // With its position in the queue, as the host shows it.
  const shown = presentHost(deps, record, revision, undefined).status?.run;
  const present = [...record.finishedRuns, ...(shown === undefined ? [] : [shown])];
  return { record, present: present.map((run) => clone(RunSchema, run)) };
}

function parseRunName(name: string): RunId {
  const [, host = '', number] = /^(hosts\/[^/]+)\/runs\/([1-9]\d{0,17})$/.exec(name) ?? [];
  const hostId = parseName('hosts', host);
  if (hostId !== undefined && number !== undefined) return { hostId, number: BigInt(number) };
  const description = 'must name a run of a host, as in "hosts/h1/runs/3"';
  throw invalidArgument([{ field: 'name', description }]);
}
