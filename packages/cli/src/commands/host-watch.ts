/**
 * rackwright host watch: what changes, as it changes.
 *
 * Invariant: a line is printed when what it says differs from the host's last one.
 */
import {
  type Host,
  HostState,
  WatchHostsResponse_Kind as Kind,
  type WatchHostsResponse,
  WatchHostsResponseSchema,
} from '@rackwright/api';
import { buildCommand } from '@stricli/core';
import { UsageError } from '../failure.ts';
import { parseWhole, resourceName, type SharedFlags } from '../flags.ts';
import { changeText } from '../output/host.ts';
import { printJsonLine, printLines } from '../output/show.ts';
import type { CliContext, World } from '../world.ts';
import { hostAliases, hostFlags, withHosts } from './host-client.ts';
import { watchResumed } from './resumed-watch.ts';

const untilStates = {
  manageable: HostState.MANAGEABLE,
  available: HostState.AVAILABLE,
  deleted: undefined,
} as const;

interface WatchFlags extends SharedFlags {
  readonly until?: keyof typeof untilStates;
  readonly timeout?: number;
}

/** The command. */
export const watchHost = buildCommand({
  docs: { brief: 'Print changes of one host, or of all' },
  parameters: {
    flags: {
      ...hostFlags,
      until: {
        kind: 'enum',
        values: ['manageable', 'available', 'deleted'],
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
    const watch: Watch = { world: this.world, flags, name, lastLines: new Map() };
    await withHosts(this.world, flags, (hosts) =>
      watchResumed(
        this.world,
        flags.timeout,
        (position, options) => hosts.watchHosts({ name, position }, options),
        (event) => isOver(watch, event),
      ),
    );
  },
});

interface Watch {
  readonly world: World;
  readonly flags: WatchFlags;
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
  return isReached(flags, host, deleted);
}

/** All present hosts have been sent: says when the one that is watched was not among them. */
function isAbsent({ world, flags, lastLines, name }: Watch): boolean {
  if (name === '' || lastLines.has(name)) return false;
  world.err.write(`${name} does not exist now.\n`);
  return flags.until === 'deleted';
}

function isReached({ until }: WatchFlags, host: Host, deleted: boolean): boolean {
  if (until === undefined) return false;
  if (until === 'deleted') return deleted;
  return !deleted && host.status?.state === untilStates[until];
}

function timeOfDay({ clock }: World): string {
  return new Date(clock.nowMs()).toISOString().slice(11, 19);
}
