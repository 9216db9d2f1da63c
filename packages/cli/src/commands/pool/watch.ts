/** rackwright pool watch: changes as they happen. */
import {
  isPoolBecause,
  WatchPoolsResponse_Kind as Kind,
  type Pool,
  poolCondition,
  type WatchPoolsResponse,
  WatchPoolsResponseSchema,
} from '@rackwright/messages';
import { buildCommand } from '@stricli/core';
import type { CliContext, CommandIo } from '../../command-io.ts';
import { GoalUnreachable, UsageError } from '../../failure.ts';
import { parseWhole, resourceName, type SharedFlags } from '../../flags.ts';
import { poolLine } from '../../output/pool.ts';
import { isForPrograms, printEvent, printLines } from '../../output/show.ts';
import { sharedAliases, sharedFlags } from '../frame/frames.ts';
import { watchResumed } from '../frame/resumed-watch.ts';
import { withPools } from './client.ts';

interface WatchFlags extends SharedFlags {
  readonly until?: 'current' | 'deleted';
  readonly timeout?: number;
}

interface Watch {
  readonly io: CommandIo;
  readonly flags: WatchFlags;
  readonly name: string;
  readonly lastLines: Map<string, string>;
}

/** The command. */
export const watchPool = buildCommand({
  docs: { brief: 'Print changes of one pool, or of all' },
  parameters: {
    flags: {
      ...sharedFlags,
      until: {
        kind: 'enum',
        values: ['current', 'deleted'],
        optional: true,
        brief:
          'End when all hosts of the one pool are on their image (13: they fail), or it is gone',
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
      parameters: [{ parse: String, optional: true, brief: 'Id of the pool', placeholder: 'pool' }],
    },
    aliases: sharedAliases,
  },
  async func(this: CliContext, flags: WatchFlags, id?: string) {
    const { io } = this;
    if (flags.until !== undefined && id === undefined) {
      throw new UsageError('--until needs the pool that is waited for');
    }
    const name = id === undefined ? '' : resourceName('pools', id);
    const watch: Watch = { io, flags, name, lastLines: new Map() };
    await withPools(io, flags, (pools) =>
      watchResumed(
        io,
        { timeoutSeconds: flags.timeout, late: () => lateText(watch) },
        (position, options) => pools.watchPools({ name, position }, options),
        (event) => isOver(watch, event),
      ),
    );
  },
});

/** Prints an event; true when it is what `--until` waits for. */
function isOver(watch: Watch, { kind, pool, position, ...rest }: WatchPoolsResponse): boolean {
  const { io, flags, lastLines, name } = watch;
  if (kind === Kind.SYNCED) {
    if (name !== '' && !lastLines.has(name)) io.err.write(`${name} does not exist now.\n`);
    return name !== '' && !lastLines.has(name) && flags.until === 'deleted';
  }
  if (pool === undefined) return false;
  const deleted = kind === Kind.DELETED;
  const line = deleted ? `${pool.name}  deleted` : poolLine(pool);
  if (isForPrograms(flags.output)) {
    printEvent(io, flags.output, WatchPoolsResponseSchema, { kind, pool, position, ...rest });
  } else if (lastLines.get(pool.name) !== line) printLines(io, [line]);
  lastLines.set(pool.name, line);
  if (flags.until === 'deleted') return deleted;
  return flags.until === 'current' && !deleted && isCurrent(pool);
}

function lateText({ flags, name, lastLines }: Watch): string {
  const last = lastLines.get(name) ?? name;
  if (flags.until === undefined) return `${flags.timeout} s are over`;
  const hint = `see \`rackwright pool explain ${name.replace('pools/', '')}\``;
  return `${name} is not ${flags.until} after ${flags.timeout} s: ${last}; ${hint}`;
}

/**
 * Whether its hosts are on its image. Throws `GoalUnreachable` once they do not get there without
 * help: the rollout is halted, or the pool has gone back from the image.
 */
export function isCurrent({ name, status }: Pool): boolean {
  const upToDate = poolCondition(status, 'UpToDate');
  const isHalted = isPoolBecause(status, 'UpToDate', 'Halted');
  if (isHalted) throw new GoalUnreachable(`${name}: ${upToDate?.message}`);
  if (upToDate?.status !== true) return false;
  const { rolledBackFrom = '', target } = status ?? {};
  if (rolledBackFrom === '') return true;
  const back = `back from ${rolledBackFrom}, on which hosts failed`;
  throw new GoalUnreachable(`${name}: its hosts are on ${target?.image}: the pool went ${back}`);
}
