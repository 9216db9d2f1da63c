/**
 * rackwright host watch: what changes, as it changes.
 *
 * Invariant: a line is printed when what it says differs from the host's last one.
 */
import {
  HoldScope,
  type Host,
  HostState,
  WatchHostsResponse_Kind as Kind,
  RunKind,
  RunPhase,
  type WatchHostsResponse,
  WatchHostsResponseSchema,
} from '@rackwright/messages';
import { buildCommand } from '@stricli/core';
import { NeverReached, UsageError } from '../../failure.ts';
import { parseWhole, resourceName, type SharedFlags, textFlag } from '../../flags.ts';
import { enumValue } from '../../output/enum-name.ts';
import { changeText } from '../../output/host.ts';
import { printJsonLine, printLines } from '../../output/show.ts';
import type { CliContext, World } from '../../world.ts';
import { type OpenWatch, watchResumed } from '../frame/resumed-watch.ts';
import { hostAliases, hostFlags, withHosts } from './client.ts';

/** Every state that a host can be in, and `deleted`, which is the same as gone. */
export const untilWords = [
  'new',
  'manageable',
  'available',
  'provisioned',
  'external',
  'gone',
  'deleted',
] as const;

interface WatchFlags extends SharedFlags {
  readonly until?: (typeof untilWords)[number];
  readonly timeout?: number;
  readonly filter?: string;
}

/** The command. */
export const watchHost = buildCommand({
  docs: {
    brief: 'Print changes of one host, or of all',
    fullDescription:
      'Print changes of one host, or of all.\n\n' +
      'With --until it ends with exit code 0 once the host is in that state, and with 13 at once ' +
      'when that does not come by itself: it waits for a person, or the way there was given ' +
      'up. With --timeout it ends with 14 when the time is over.',
  },
  parameters: {
    flags: {
      ...hostFlags,
      until: {
        kind: 'enum',
        values: untilWords,
        optional: true,
        brief: 'End when the one host has come there',
      },
      timeout: {
        kind: 'parsed',
        parse: parseWhole,
        optional: true,
        brief: 'Give up after this many seconds',
        placeholder: 'seconds',
      },
      filter: textFlag('Only hosts that match, as in host list', 'filter'),
    },
    positional: {
      kind: 'tuple',
      parameters: [{ parse: String, optional: true, brief: 'Id of the host', placeholder: 'host' }],
    },
    aliases: hostAliases,
  },
  async func(this: CliContext, flags: WatchFlags, id?: string) {
    if (flags.until !== undefined && id === undefined) {
      throw new UsageError('--until needs the host that is waited for');
    }
    const name = id === undefined ? '' : resourceName('hosts', id);
    const { until, filter = '' } = flags;
    if (until !== undefined && filter !== '') {
      throw new UsageError('--until follows one host whatever becomes of it; leave --filter out');
    }
    await withHosts(this.world, flags, (hosts) =>
      showUntil(this.world, flags, name, (position, options) =>
        hosts.watchHosts({ name, position, filter }, options),
      ),
    );
  },
});

/**
 * Prints what the watch that `open` opens tells of one host, or of all where `name` is empty, until
 * `--until` is reached. Rejects with `NeverReached` or `WaitedTooLong` when it is not.
 */
export function showUntil(
  world: World,
  flags: Pick<WatchFlags, 'until' | 'timeout' | 'output'>,
  name: string,
  open: OpenWatch<WatchHostsResponse>,
): Promise<void> {
  const watch: Watch = { world, flags, name, lastLines: new Map() };
  const patience = { timeoutSeconds: flags.timeout, late: () => lateText(watch) };
  return watchResumed(world, patience, open, (event) => isOver(watch, event));
}

interface Watch {
  readonly world: World;
  readonly flags: Pick<WatchFlags, 'until' | 'timeout' | 'output'>;
  /** The one host that is watched; empty for all. */
  readonly name: string;
  readonly lastLines: Map<string, string>;
}

/** Prints an event; true when it is what `--until` waits for. */
function isOver(watch: Watch, event: WatchHostsResponse): boolean {
  const { world, flags, lastLines } = watch;
  if (event.kind === Kind.SYNCED) return isAbsent(watch);
  if (event.host === undefined) return false;
  const { host } = event;
  const deleted = event.kind === Kind.DELETED;
  const line = deleted ? `${host.name}  deleted` : changeText(host);
  if (flags.output === 'json') {
    printJsonLine(world, WatchHostsResponseSchema, event);
  } else if (lastLines.get(host.name) !== line) {
    printLines(world, [`${timeOfDay(world)}  ${line}`]);
  }
  if (deleted) lastLines.delete(host.name);
  else lastLines.set(host.name, line);
  if (isReached(flags, host, deleted)) return true;
  const why = flags.until === undefined || deleted ? undefined : stuckText(host, flags.until);
  if (why === undefined) return false;
  throw new NeverReached(`${host.name} is not ${flags.until}: ${why}; ${hintFor(host.name)}`);
}

/** All present hosts have been sent: says when the one that is watched was not among them. */
function isAbsent({ world, flags, lastLines, name }: Watch): boolean {
  if (name === '' || lastLines.has(name)) return false;
  world.err.write(`${name} does not exist now.\n`);
  return isGone(flags.until);
}

function isReached(
  { until }: Pick<WatchFlags, 'until'>,
  { status }: Host,
  deleted: boolean,
): boolean {
  if (until === undefined) return false;
  if (isGone(until)) return deleted || status?.state === HostState.GONE;
  return !deleted && status?.state === enumValue('HostState', until);
}

function isGone(until: WatchFlags['until']): boolean {
  return until === 'deleted' || until === 'gone';
}

/** Reasons of a waiting run that only a person ends. */
const waitsForPerson: ReadonlySet<string> = new Set(['hold', 'restored']);

/**
 * Why a host does not come to a state by itself; undefined: it may. A host that is held for a time,
 * frozen, or away from its agent or BMC goes on by itself.
 */
export function stuckText(
  { status }: Host,
  until: Exclude<WatchFlags['until'], undefined>,
): string | undefined {
  if (status === undefined) return undefined;
  const { backoff, run, holds, faults, claim } = status;
  const active = run === undefined || run.phase === RunPhase.ENDED ? undefined : run;
  if (active?.phase === RunPhase.WAITING && waitsForPerson.has(active.waiting?.reason ?? '')) {
    return `it waits for a person: ${active.waiting?.message}`;
  }
  if (active !== undefined) return undefined;
  const hold = holds.find((each) => each.scope === HoldScope.WORK && each.until === undefined);
  if (hold !== undefined) return `${hold.by} holds it: ${hold.reason}`;
  if ((backoff?.givenUpReason ?? '') !== '') {
    return `Rackwright stopped trying: ${backoff?.givenUpReason}`;
  }
  const unknown = faults.find(({ type }) => type === 'bootMacUnknown');
  if (unknown !== undefined && run?.kind === RunKind.INSPECT) return unknown.message;
  const failed = faults.find(({ type }) => type === 'provisionFailed');
  // A pool tries its hosts again by itself.
  if (until !== 'provisioned' || failed === undefined || claim?.by.startsWith('pools/') === true) {
    return undefined;
  }
  return failed.message;
}

function lateText({ flags, name, lastLines }: Watch): string {
  const { until, timeout } = flags;
  if (until === undefined) return `${timeout} s are over`;
  const last = lastLines.get(name) ?? name;
  return `${name} is not ${until} after ${timeout} s: ${last}; ${hintFor(name)}`;
}

function hintFor(name: string): string {
  return `see \`rackwright host explain ${name.replace('hosts/', '')}\``;
}

function timeOfDay({ clock }: World): string {
  return new Date(clock.nowMs()).toISOString().slice(11, 19);
}
