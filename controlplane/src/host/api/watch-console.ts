/**
 * WatchHostConsole: the output of a host's console, through the agent connected to this replica.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  type CallContext,
  FailureType,
  FailureTypeSchema,
  type Host,
  notFound,
  unavailable,
  type WatchHostConsoleRequest,
  type WatchHostConsoleResponseSchema,
} from '@rackwright/messages';
import type { ConsoleViews, ViewerOutput } from '../../agents/index.ts';
import { withTicks } from '../../call/follow.ts';
import { readHost } from '../../call/host-view.ts';
import { parseName, requireName } from '../../call/names.ts';
import type { RpcDependencies } from '../../call/ports.ts';
import { accessTo } from '../index.ts';
import { bmcFailed, bmcRefusal, notVerified } from './bmc-refusal.ts';

/** How often the host's existence and the caller's rights are checked. */
export const checkIntervalMs = 30_000;

type Response = MessageInitShape<typeof WatchHostConsoleResponseSchema>;
type View = Extract<Awaited<ReturnType<ConsoleViews['open']>>, { kind: 'open' }>['view'];

/** Runs until the caller goes. Throws `ApiFailure` when the console ends. */
export async function* watchHostConsole(
  deps: RpcDependencies,
  { name }: WatchHostConsoleRequest,
  { signal }: Pick<CallContext, 'signal'>,
): AsyncGenerator<Response, void, undefined> {
  const host = await verifiedHost(deps, name);
  const view = await openView(deps, host);
  try {
    for await (const each of withTicks(shownBy(view, signal), checkIntervalMs, deps.clock)) {
      if (each.kind === 'item') yield responseOf(each.item, host);
      else await mustBeSame(deps, host);
    }
  } finally {
    view.close();
  }
}

async function verifiedHost(deps: RpcDependencies, name: string): Promise<Host> {
  const found = await readHost(deps, requireName('hosts', name));
  if (found === undefined) throw notFound(name);
  if (found.host.status?.bmcIdentity === undefined) throw notVerified(found.host);
  return found.host;
}

async function openView(deps: RpcDependencies, host: Host): Promise<View> {
  const { rack = '', bmc } = host.spec ?? {};
  const identity = host.status?.bmcIdentity;
  const rackId = parseName('racks', rack) ?? '';
  const question = { hostUid: host.uid, bmc: accessTo(bmc, identity, 0n) };
  const consoleRequest = { ...question, expectedIdentity: identity };
  const opened = (await deps.consoles?.open(rackId, consoleRequest)) ?? { kind: 'noAgent' };
  if (opened.kind === 'open') return opened.view;
  throw bmcRefusal(opened, host, { verb: 'show consoles', many: 'views of consoles' });
}

async function* shownBy(
  view: View,
  signal: AbortSignal,
): AsyncGenerator<ViewerOutput, void, undefined> {
  for (;;) {
    const shown = await view.next(signal);
    if (shown === undefined) return;
    yield shown;
  }
}

function responseOf(shown: ViewerOutput, { name, spec }: Host): Response {
  switch (shown.kind) {
    case 'output': {
      const { content, droppedBytes, state, message } = shown;
      return { content, droppedBytes, state, message };
    }
    case 'failed': {
      const isKnown = FailureTypeSchema.value[shown.failure] !== undefined;
      const failure = isKnown ? shown.failure : FailureType.INVALID_RESULT;
      throw bmcFailed(failure, `${name}: ${shown.message}`);
    }
    case 'gone': {
      const text = `the agent of ${spec?.rack ?? ''} has gone; look again when it is back`;
      throw unavailable('AGENT_AWAY', `${name}: ${text}.`);
    }
  }
}

/** Checks that it is the same host, with the same BMC. */
async function mustBeSame(deps: RpcDependencies, host: Host): Promise<void> {
  const now = await verifiedHost(deps, host.name);
  const [before, after] = [host.spec, now.spec];
  const isSame =
    now.uid === host.uid &&
    after?.rack === before?.rack &&
    after?.bmc?.address === before?.bmc?.address;
  if (isSame) return;
  const text = 'it has another rack or BMC, or is another host by now; look again';
  throw unavailable('HOST_CHANGED', `${host.name}: ${text}.`);
}
