/** ReadHostBmc: what a host's BMC says now, through the agent that is connected here. */
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
  failedPrecondition,
  failureWord,
  type Host,
  notFound,
  type ReadHostBmcRequest,
  unavailable,
} from '@rackwright/messages';
import type { Asked } from '../../agents/index.ts';
import { readHost } from '../../call/host-view.ts';
import { parseName, requireName } from '../../call/names.ts';
import type { RpcDependencies } from '../../call/ports.ts';
import { Violations } from '../../call/violations.ts';
import { accessTo } from '../index.ts';

const entriesMax = 200;
const entriesUsual = 50;

type Reading = MessageInitShape<typeof BmcReadingSchema>;

/** Asks the agent, and waits for what it says. Throws `ApiFailure` when there is no reading. */
export async function readHostBmc(
  deps: RpcDependencies,
  { name, kind, maxEntries = entriesUsual }: ReadHostBmcRequest,
  { signal }: Pick<CallContext, 'signal'>,
): Promise<Reading> {
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
  const asked = await deps.bmcReads?.ask(rackId, question, signal);
  return readingIn(asked ?? { kind: 'noAgent' }, host, kind, deps.clock.nowMs());
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

function notVerified({ name }: Host) {
  const command = `rackwright host verify ${name.replace('hosts/', '')}`;
  const words = `${name}: its BMC was never verified; do so first: ${command}.`;
  return failedPrecondition('BMC_NOT_VERIFIED', words);
}

function readingIn(asked: Asked, { name, spec }: Host, kind: BmcReadKind, nowMs: number): Reading {
  const rack = spec?.rack ?? '';
  switch (asked.kind) {
    case 'answered':
      return answerOf(asked.read, name, nowMs);
    case 'noAgent': {
      const words = `no agent of ${rack} is connected here`;
      throw unavailable('AGENT_AWAY', `${name}: ${words}; try again when it is.`);
    }
    case 'agentCannot': {
      const what = enumWord(BmcReadKindSchema, kind) ?? 'that';
      const words = `the agent of ${rack} cannot read ${what} of BMCs; upgrade it`;
      throw bmcFailed(FailureType.UNSUPPORTED, `${name}: ${words}.`);
    }
    case 'noSecret':
      throw bmcFailed(FailureType.CREDENTIAL_UNUSABLE, `${name}: ${asked.message}.`);
    case 'tooMany': {
      const words = `${asked.waiting} reads of BMCs of ${rack} are under way`;
      throw unavailable('TOO_MANY_READS', `${name}: ${words}; try again later.`);
    }
    case 'noAnswer':
      throw unavailable('AGENT_AWAY', `${name}: the agent of ${rack} gave no answer; try again.`);
  }
}

function answerOf(
  { reading, failure, transient, message }: agent.BmcRead,
  name: string,
  nowMs: number,
): Reading {
  const words = `${name}: ${message.slice(0, messageCharactersMax)}`;
  if (failure !== FailureType.UNSPECIFIED) throw bmcFailed(failure, words);
  if (transient !== 0) throw unavailable('BMC_UNREACHABLE', words);
  if (reading === undefined) {
    throw bmcFailed(FailureType.INVALID_RESULT, `${name}: the agent answered without a reading.`);
  }
  return { ...reading, readTime: timestampFromMs(nowMs) };
}

/** An agent's word is bounded here, too. */
const messageCharactersMax = 1_024;

function bmcFailed(type: FailureType, message: string) {
  const failure = failureWord(type).replaceAll(/[A-Z]/g, (letter) => `_${letter}`);
  return failedPrecondition('BMC_FAILED', message, { failure: failure.toUpperCase() });
}
