/** ReadHostBmc: present data of a host's BMC, through the agent connected to this replica. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type agent,
  type BmcReadingSchema,
  BmcReadKind,
  BmcReadKindSchema,
  type CallContext,
  enumWord,
  FailureType,
  type Host,
  notFound,
  type ReadHostBmcRequest,
  unavailable,
} from '@rackwright/messages';
import type { BmcReadResult } from '../../agents/index.ts';
import { readHost } from '../../call/host-view.ts';
import { parseName, requireName } from '../../call/names.ts';
import type { RpcDependencies } from '../../call/ports.ts';
import { Violations } from '../../call/violations.ts';
import { accessTo } from '../index.ts';
import { bmcFailed, bmcRefusal, messageCharactersMax, notVerified } from './bmc-refusal.ts';

const entriesMax = 200;
const entriesUsual = 50;

type BmcReadingInit = MessageInitShape<typeof BmcReadingSchema>;

/** Asks the agent, and waits for its answer. Throws `ApiFailure` when there is none. */
export async function readHostBmc(
  deps: RpcDependencies,
  { name, kind, maxEntries = entriesUsual }: ReadHostBmcRequest,
  { signal }: Pick<CallContext, 'signal'>,
): Promise<BmcReadingInit> {
  checkRequest(kind, maxEntries);
  const found = await readHost(deps, requireName('hosts', name));
  if (found === undefined) throw notFound(name);
  const { host } = found;
  const { rack = '', bmc } = host.spec ?? {};
  const identity = host.status?.bmcIdentity;
  if (identity === undefined) throw notVerified(host);
  const question = {
    hostUid: host.uid,
    bmc: accessTo(bmc, identity, 0n),
    expectedIdentity: identity,
    ...{ kind, maxEntries },
  };
  const rackId = parseName('racks', rack) ?? '';
  const result = await deps.bmcReads?.ask(rackId, question, signal);
  return readingIn(result ?? { kind: 'noAgent' }, host, kind, deps.clock.nowMs());
}

function checkRequest(kind: BmcReadKind, maxEntries: number): void {
  const violations = new Violations();
  const words = BmcReadKindSchema.values.map(({ name }) => name).slice(1);
  const isKnown = kind !== BmcReadKind.UNSPECIFIED && BmcReadKindSchema.value[kind] !== undefined;
  if (!isKnown) violations.add('kind', `must be one of ${words.join(', ')}`);
  if (maxEntries < 1 || maxEntries > entriesMax) {
    violations.add('max_entries', `must be 1 to ${entriesMax}, not ${maxEntries}`);
  }
  violations.throwIfAny();
}

function readingIn(
  result: BmcReadResult,
  host: Host,
  kind: BmcReadKind,
  nowMs: number,
): BmcReadingInit {
  if (result.kind === 'answered') return answerOf(result.read, host.name, nowMs);
  const verb = `read ${enumWord(BmcReadKindSchema, kind) ?? 'that'} of BMCs`;
  throw bmcRefusal(result, host, { verb, many: 'reads of BMCs' });
}

function answerOf(
  { reading, failure, transient, message }: agent.BmcRead,
  name: string,
  nowMs: number,
): BmcReadingInit {
  const text = `${name}: ${message.slice(0, messageCharactersMax)}`;
  if (failure !== FailureType.UNSPECIFIED) throw bmcFailed(failure, text);
  if (transient !== 0) throw unavailable('BMC_UNREACHABLE', text);
  if (reading === undefined) {
    throw bmcFailed(FailureType.INVALID_RESULT, `${name}: the agent answered without a reading.`);
  }
  return { ...reading, readTime: timestampFromMs(nowMs) };
}
