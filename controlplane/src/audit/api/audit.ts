/** AuditService: what was requested, by whom, and the result. */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  type AuditRecord,
  AuditService,
  type BoundService,
  bind,
  type ListAuditRecordsRequest,
} from '@rackwright/messages';
import { auditVisibility } from '../../access/index.ts';
import { filterOf } from '../../call/filtering.ts';
import { pageSizeOf } from '../../call/paging.ts';
import type { RpcDependencies } from '../../call/ports.ts';
import { formatPageToken, parsePageToken } from '../../call/position.ts';
import { Violations } from '../../call/violations.ts';
import type { FilterFields } from '../../filter/index.ts';
import { orUnavailable } from '../../records/index.ts';
import { type AuditSearch, searchAudit } from '../index.ts';

const filterCharsMax = 256;

/** The fields of a record, for `ListAuditRecordsRequest.filter`. */
const auditFields: FilterFields<AuditRecord> = {
  time: { kind: 'time', of: ({ time }) => time && timestampMs(time) },
  actor: { kind: 'text', of: ({ actor }) => actor },
  kind: { kind: 'text', of: ({ kind }) => kind },
  action: { kind: 'text', of: ({ action }) => action },
  resource: { kind: 'text', of: ({ resource }) => resource },
  outcome: { kind: 'text', of: ({ outcome }) => outcome },
  message: { kind: 'text', of: ({ message }) => message, folds: true },
  request_id: { kind: 'text', of: ({ requestId }) => requestId },
  operation_id: { kind: 'text', of: ({ operationId }) => operationId },
  peer: { kind: 'text', of: ({ peer }) => peer },
};

type AuditDependencies = Pick<RpcDependencies, 'fleetView' | 'principal' | 'store'>;

/** The service over these dependencies. */
export function createAuditService(deps: AuditDependencies): BoundService {
  return bind(AuditService, { listAuditRecords: (request) => listAuditRecords(deps, request) });
}

async function listAuditRecords(
  { store, fleetView, principal }: AuditDependencies,
  request: ListAuditRecordsRequest,
) {
  const size = pageSizeOf(request.pageSize);
  const search = checkSearch(request);
  const { matches } = filterOf(auditFields, request.filter);
  const filter = JSON.stringify(request.filter === '' ? search : [search, request.filter]);
  const token = parsePageToken(store, filter, request.pageToken);
  const before = token === '' ? undefined : Number(token);
  const isSeen = await auditVisibility(fleetView, principal.scope);
  const isWanted = (record: AuditRecord) => isSeen(record) && matches(record);
  const page = await orUnavailable(searchAudit(store.log, search, size, before, isWanted));
  const nextPageToken =
    page.before === undefined ? '' : formatPageToken(store, filter, String(page.before));
  return { records: [...page.records], nextPageToken };
}

function checkSearch(request: ListAuditRecordsRequest): AuditSearch {
  const { actor, resource, action, outcome, text, startTime, endTime } = request;
  const violations = new Violations();
  for (const [field, value] of Object.entries({ actor, resource, action, outcome, text })) {
    if (value.length <= filterCharsMax) continue;
    violations.add(field, `has ${value.length} characters; at most ${filterCharsMax} are allowed`);
  }
  const startMs = startTime === undefined ? 0 : timestampMs(startTime);
  const endMs = endTime === undefined ? Number.MAX_SAFE_INTEGER : timestampMs(endTime);
  if (endMs <= startMs) violations.add('end_time', 'must be after start_time');
  violations.throwIfAny();
  return { actor, resource, action, outcome, text, startMs, endMs };
}
