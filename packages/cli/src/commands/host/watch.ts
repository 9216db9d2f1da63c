/**
 * rackwright host watch: changes as they happen.
 *
 * Invariant: a line is printed when it differs from the host's last one.
 */
import {
  type HostName,
  WatchHostsResponse_Kind as Kind,
  type WatchHostsResponse,
  WatchHostsResponseSchema,
} from '@rackwright/messages';
import { buildCommand } from '@stricli/core';
import type { CliContext, CommandIo } from '../../command-io.ts';
import { GoalUnreachable, UsageError } from '../../failure.ts';
import { resourceName, type SharedFlags, textFlag } from '../../flags.ts';
import { changeText } from '../../output/host.ts';
import { isForPrograms, printEvent, printLines } from '../../output/show.ts';
import { timeOfDay } from '../frame/progress.ts';
import { type OpenWatch, watchResumed } from '../frame/resumed-watch.ts';
import { parseTimeout } from '../frame/wait.ts';
import { hintFor, hostAliases, hostFlags, withHosts } from './client.ts';
import { isGone, type UntilWord, untilWords, verdictOf } from './target.ts';

interface WatchFlags extends SharedFlags {
  readonly until?: UntilWord;
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
        brief: 'End when the one host is in this state',
      },
      timeout: {
        kind: 'parsed',
        parse: parseTimeout,
        optional: true,
        brief: 'Give up after so many seconds, or as 90s, 30m, 2h',
        placeholder: 'time',
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
    await withHosts(this.io, flags, (hosts) =>
      showUntil(this.io, flags, name, (position, options) =>
        hosts.watchHosts({ name, position, filter }, options),
      ),
    );
  },
});

/**
 * Prints the events of the watch that `open` opens, about one host, or about all where `name` is
 * empty, until `--until` is reached. Rejects with `GoalUnreachable` or `WaitedTooLong` when it is
 * not.
 */
export function showUntil(
  io: CommandIo,
  flags: Pick<WatchFlags, 'until' | 'timeout' | 'output'>,
  name: string,
  open: OpenWatch<WatchHostsResponse>,
): Promise<void> {
  const watch: Watch = { io, flags, name, lastLines: new Map() };
  const patience = { timeoutSeconds: flags.timeout, late: () => lateText(watch) };
  return watchResumed(io, patience, open, (event) => isOver(watch, event));
}

interface Watch {
  readonly io: CommandIo;
  readonly flags: Pick<WatchFlags, 'until' | 'timeout' | 'output'>;
  /** The one host that is watched; empty for all. */
  readonly name: string;
  readonly lastLines: Map<HostName, string>;
}

/** Prints an event; true when it is what `--until` waits for. */
function isOver(watch: Watch, event: WatchHostsResponse): boolean {
  const { io, flags, lastLines } = watch;
  if (event.kind === Kind.SYNCED) return isAbsent(watch);
  if (event.host === undefined) return false;
  const { host } = event;
  const deleted = event.kind === Kind.DELETED;
  const line = deleted ? `${host.name}  deleted` : changeText(host);
  if (isForPrograms(flags.output)) {
    printEvent(io, flags.output, WatchHostsResponseSchema, event);
  } else if (lastLines.get(host.name) !== line) {
    printLines(io, [`${timeOfDay(io.clock.nowMs())}  ${line}`]);
  }
  if (deleted) lastLines.delete(host.name);
  else lastLines.set(host.name, line);
  if (flags.until === undefined) return false;
  const verdict = verdictOf({ kind: 'state', until: flags.until }, host, { isDeleted: deleted });
  if (verdict.kind !== 'stuck' || deleted) return verdict.kind === 'reached';
  const hint = hintFor(host.name);
  throw new GoalUnreachable(`${host.name} is not ${flags.until}: ${verdict.why}; ${hint}`);
}

/** All present hosts have been sent: says when the watched one was not among them. */
function isAbsent({ io, flags, lastLines, name }: Watch): boolean {
  if (name === '' || lastLines.has(name)) return false;
  io.err.write(`${name} does not exist now.\n`);
  return isGone(flags.until);
}

function lateText({ flags, name, lastLines }: Watch): string {
  const { until, timeout } = flags;
  if (until === undefined) return `${timeout} s are over`;
  const last = lastLines.get(name) ?? name;
  return `${name} is not ${until} after ${timeout} s: ${last}; ${hintFor(name)}`;
}
