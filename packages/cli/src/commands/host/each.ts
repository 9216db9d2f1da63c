/**
 * rackwright host each: one request for every host that is selected.
 *
 * Invariants:
 * 1. The hosts are named before anything is asked of them, and nothing is asked before a person
 *    has agreed.
 * 2. A host that refuses keeps none of the others waiting; each has its line in the report.
 */
import { ApiFailure, counted, HoldScope, type Host } from '@rackwright/messages';
import { buildCommand } from '@stricli/core';
import { SomeRefused, UsageError } from '../../failure.ts';
import { inParallel } from '../../files/plan.ts';
import { connectionFlags, parseLabels, parseWhole, resourceName } from '../../flags.ts';
import { stateText } from '../../output/host.ts';
import { disksText } from '../../output/loss.ts';
import { printLines, printTable } from '../../output/show.ts';
import type { ConnectionFlags } from '../../settings.ts';
import type { CliContext } from '../../world.ts';
import { allPages } from '../frame/calls.ts';
import { agree } from '../frame/confirm.ts';
import { type HostClient, withHosts } from './client.ts';

interface Call {
  readonly name: string;
  readonly reason: string;
}

type Ask = (hosts: HostClient, call: Call) => Promise<Host>;

/** What may be asked of many hosts at once. */
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

/** Hosts at once. */
const parallelMax = 64;

interface EachFlags extends ConnectionFlags {
  readonly selector?: readonly string[];
  readonly rack?: string;
  readonly reason: string;
  readonly parallel: number;
  readonly yes: boolean;
}

export const eachHost = buildCommand({
  docs: {
    brief: 'Ask the same of every host with these labels, or of a rack',
    fullDescription:
      'Names the hosts, asks, then does it with a bounded number at once and reports each. hold ' +
      'keeps work from them for --reason, unhold lifts the hold of that reason. Templates run on ' +
      'many hosts by `workflow batch`.',
  },
  parameters: {
    flags: {
      ...connectionFlags,
      selector: {
        kind: 'parsed',
        parse: String,
        variadic: true,
        optional: true,
        brief: 'Hosts with this label, NAME=VALUE; may be repeated, then all must fit',
        placeholder: 'name=value',
      },
      rack: { kind: 'parsed', parse: String, optional: true, brief: 'Only of this rack' },
      reason: { kind: 'parsed', parse: String, default: '', brief: 'Why, one line' },
      parallel: {
        kind: 'parsed',
        parse: parseWhole,
        default: '8',
        brief: `Hosts at once, 1 to ${parallelMax}`,
        placeholder: 'number',
      },
      yes: { kind: 'boolean', default: false, brief: 'Do not ask' },
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
  },
  async func(this: CliContext, flags: EachFlags, action: Action) {
    const { world } = this;
    const { selector, rack, parallel, reason } = flags;
    if (selector === undefined && rack === undefined) {
      throw new UsageError('no host is selected: give --selector or --rack');
    }
    if (parallel < 1 || parallel > parallelMax) {
      throw new UsageError(`--parallel is ${parallel}; it must be from 1 to ${parallelMax}`);
    }
    const labels = Object.entries(parseLabels(selector ?? []));
    await withHosts(world, flags, async (hosts) => {
      const all = await allPages(
        (pageToken) =>
          hosts.listHosts({ pageToken, rack: rack ? resourceName('racks', rack) : '' }),
        (page) => page.hosts,
      );
      const chosen = all.filter((host) => labels.every(([key, is]) => host.labels[key] === is));
      if (chosen.length === 0) throw new UsageError('no host is selected by these labels');
      printLines(world, [`${action}: ${chosen.map(({ name }) => name).join(', ')}`]);
      if (!flags.yes) await agree(world, questionOf(action, chosen));
      const ask: Ask = actions[action];
      const report = await inParallel(
        chosen,
        ({ name }) => outcomeOf(ask(hosts, { name, reason }), name),
        parallel,
      );
      printTable(world, columns, report);
      const refused = report.filter(({ isRefused }) => isRefused).length;
      if (refused > 0)
        throw new SomeRefused(`${refused} of ${counted(report.length, 'host')} refused`);
    });
  },
});

interface Outcome {
  readonly name: string;
  readonly isRefused: boolean;
  readonly words: string;
}

const columns = [
  { title: 'HOST', value: ({ name }: Outcome) => name },
  { title: 'OUTCOME', value: ({ isRefused }: Outcome) => (isRefused ? 'refused' : 'done') },
  { title: 'WORDS', value: ({ words }: Outcome) => words, widthMin: 20 },
];

/** Invariant 2. */
async function outcomeOf(asking: Promise<Host>, name: string): Promise<Outcome> {
  try {
    return { name, isRefused: false, words: stateText(await asking) };
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error;
    return { name, isRefused: true, words: error.message };
  }
}

/** Actions after which data is gone. */
const destructive: ReadonlySet<Action> = new Set(['clean', 'release']);

function questionOf(action: Action, hosts: readonly Host[]): string {
  const which = counted(hosts.length, 'host');
  if (!destructive.has(action)) return `Ask for ${action} of ${which}? [y/N] `;
  const verb = action === 'clean' ? 'Clean' : 'Release and clean';
  return `${verb} ${which}? All data on ${disksText(hosts)} is lost. [y/N] `;
}

function parseAction(text: string): Action {
  if (Object.hasOwn(actions, text)) return text as Action;
  throw new SyntaxError(`"${text}" is none of ${Object.keys(actions).join(', ')}`);
}
