/** rackwright host each: one request for every host with these labels, or of a rack. */
import { HoldScope } from '@rackwright/messages';
import { buildCommand } from '@stricli/core';
import type { CliContext } from '../../command-io.ts';
import { UsageError } from '../../failure.ts';
import { parseLabels, type SharedFlags } from '../../flags.ts';
import type { Destruction } from '../../output/loss.ts';
import { agreeToMany, askMany } from './bulk.ts';
import { type HostClient, hostAliases, hostFlags, reasonFlag, withHosts } from './client.ts';
import { filterFrom } from './list.ts';
import { isSelection, type SelectionFlags, selectedHosts, selectionFlags } from './select.ts';

type Ask = (
  hosts: HostClient,
  call: { readonly name: string; readonly reason: string },
) => ReturnType<HostClient['getHost']>;

/** Requests that are possible for many hosts at once. */
const actions = {
  verify: (hosts, { name }) => hosts.verifyHost({ name }),
  inspect: (hosts, { name }) => hosts.inspectHost({ name }),
  clean: (hosts, call) => hosts.cleanHost(call),
  retry: (hosts, { name }) => hosts.retryHost({ name }),
  abort: (hosts, call) => hosts.abortRun(call),
  claim: (hosts, call) => hosts.claimHost(call),
  unclaim: (hosts, call) => hosts.unclaimHost(call),
  release: (hosts, call) => hosts.releaseHost(call),
  hold: (hosts, call) => hosts.holdHost({ ...call, scope: HoldScope.WORK }),
  unhold: (hosts, { name, reason }) => hosts.releaseHold({ name, hold: reason }),
} as const satisfies Record<string, Ask>;

type Action = keyof typeof actions;

/** Actions after which data is gone. */
const losses: Partial<Record<Action, Destruction>> = {
  clean: { kind: 'clean', steps: [] },
  release: { kind: 'release' },
};

interface EachFlags extends SharedFlags, SelectionFlags {
  readonly selector?: readonly string[];
  readonly reason: string;
}

export const eachHost = buildCommand({
  docs: {
    brief: 'Ask the same of every host with these labels, or of a rack',
    fullDescription:
      'Says what is lost, asks, then does it with a bounded number at once and reports each. ' +
      'hold keeps work from them for --reason, unhold lifts the hold of that reason. Commands ' +
      'such as `host clean` take --filter and --rack, too, and can wait. Templates run on many ' +
      'hosts by `workflow batch`.',
  },
  parameters: {
    flags: {
      ...hostFlags,
      selector: {
        kind: 'parsed',
        parse: String,
        variadic: true,
        optional: true,
        brief: 'Hosts with this label, NAME=VALUE; may be repeated, then all must match',
        placeholder: 'name=value',
      },
      ...selectionFlags,
      ...reasonFlag,
    },
    positional: {
      kind: 'tuple',
      parameters: [
        {
          parse: parseAction,
          brief: `What is asked: ${Object.keys(actions).join(', ')}`,
          placeholder: 'action',
        },
      ],
    },
    aliases: hostAliases,
  },
  async func(this: CliContext, flags: EachFlags, action: Action) {
    const { io } = this;
    const { selector = [], filter = '', rack, reason } = flags;
    if (selector.length === 0 && !isSelection(flags)) {
      throw new UsageError('no host is selected: give --selector, --filter or --rack');
    }
    const label = Object.entries(parseLabels(selector)).map(([key, value]) => `${key}=${value}`);
    const chosenBy = { filter: filterFrom({ label, filter }), ...(rack ? { rack } : {}) };
    const loss = losses[action];
    const destruction = { word: action, ...(loss === undefined ? {} : { loss }) };
    await withHosts(io, flags, async (hosts) => {
      const chosen = await selectedHosts(hosts, chosenBy, loss !== undefined);
      await agreeToMany(io, flags.yes, destruction, chosen);
      const ask: Ask = actions[action];
      const askHost = ({ name }: { name: string }) => ask(hosts, { name, reason });
      await askMany(io, flags, { ...destruction, waits: false, ask: askHost }, chosen);
    });
  },
});

function parseAction(text: string): Action {
  if (Object.hasOwn(actions, text)) return text as Action;
  throw new SyntaxError(`"${text}" is none of ${Object.keys(actions).join(', ')}`);
}
