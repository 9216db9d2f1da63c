/** AuditService: what was asked, by whom, and what came of it. */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  AuditService,
  type BoundService,
  bind,
  type ListAuditRecordsRequest,
} from '@rackwright/api';
import { auditInSight } from '../../access/index.ts';
import { type AuditSearch, searchAudit } from '../../audit/index.ts';
import { answered } from '../../records/index.ts';
import { pageSizeOf } from '../call/paging.ts';
import type { RpcDependencies } from '../call/ports.ts';
import { formatPageToken, parsePageToken } from '../call/position.ts';
import { Violations } from '../call/violations.ts';

const filterCharsMax = 256;

type AuditDependencies = Pick<RpcDependencies, 'store' | 'principal'>;

/** The service over these dependencies. */
export function createAuditService(deps: AuditDependencies): BoundService {
  return bind(AuditService, { listAuditRecords: (request) => listAuditRecords(deps, request) });
}

async function listAuditRecords(
  { store, principal }: AuditDependencies,
  request: ListAuditRecordsRequest,
) {
  const size = pageSizeOf(request.pageSize);
  const search = checkSearch(request);
  const filter = JSON.stringify(search);
  const token = parsePageToken(store, filter, request.pageToken);
  const before = token === '' ? undefined : Number(token);
  const isSeen = await auditInSight(store, principal.scope);
  const page = await answered(searchAudit(store.log, search, size, before, isSeen));
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
