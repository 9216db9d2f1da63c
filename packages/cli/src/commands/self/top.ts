/** rackwright top: the fleet, as it is now. */
import {
  type CountHostsResponse,
  FleetService,
  type Host,
  HostService,
  HostView,
} from '@rackwright/messages';
import { errorText } from '@rackwright/platform';
import { createClient } from '@rackwright/rpc';
import { buildCommand } from '@stricli/core';
import { briefs } from '../../briefs.ts';
import { connectionFlags } from '../../flags.ts';
import { type FleetSeen, topLines } from '../../output/top.ts';
import type { Connection, ConnectionFlags } from '../../settings.ts';
import type { CliContext, World } from '../../world.ts';
import { withConnection } from '../frame/calls.ts';
import { pause } from '../frame/pause.ts';
import { parseTimeout } from '../frame/wait.ts';

/** Lines of each list without a terminal, and calls that one look may take, milliseconds. */
const linesElsewhere = 50;
const lookTimeoutMs = 10_000;

const screen = { enter: '\x1b[?1049h\x1b[?25l', leave: '\x1b[?25h\x1b[?1049l', home: '\x1b[H' };

interface TopFlags extends ConnectionFlags {
  readonly interval: number;
  readonly once: boolean;
}

export const showTop = buildCommand({
  docs: {
    brief: briefs.top,
    fullDescription:
      'Shows on a terminal, until Ctrl-C, how many hosts are in which state, the runs under way ' +
      'with their progress, and what fails. In a pipe, or with --once, it is printed once. As ' +
      'much is asked for as fits the terminal, however large the fleet is.',
  },
  parameters: {
    flags: {
      ...connectionFlags,
      interval: {
        kind: 'parsed',
        parse: parseTimeout,
        default: '2',
        brief: 'Time between two looks, as 2 or 1m',
        placeholder: 'time',
      },
      once: { kind: 'boolean', default: false, withNegated: false, brief: 'Print it once' },
    },
  },
  async func(this: CliContext, flags: TopFlags) {
    const { world } = this;
    await withConnection(world, flags, async (connection) => {
      const { columns } = world.out;
      if (flags.once || columns === undefined) {
        const seen = await look(world, connection, linesElsewhere);
        for (const line of topLines(seen, world.clock.nowMs(), columns)) {
          world.out.write(`${line}\n`);
        }
      } else await watchScreen(world, connection, flags.interval * 1_000);
    });
  },
});

/** Draws again and again. What cannot be asked is told above what was last seen. */
async function watchScreen(
  world: World,
  connection: Connection,
  intervalMs: number,
): Promise<void> {
  const { out, signal } = world;
  let seen = await look(world, connection, rowsOf(world));
  out.write(screen.enter);
  try {
    while (!signal.aborted) {
      draw(world, seen);
      await pause(world, intervalMs);
      if (signal.aborted) break;
      seen = await lookAgain(world, connection, seen);
    }
  } finally {
    out.write(screen.leave);
  }
}

async function lookAgain(
  world: World,
  connection: Connection,
  before: FleetSeen,
): Promise<FleetSeen> {
  try {
    return await look(world, connection, rowsOf(world));
  } catch (error) {
    const trouble = errorText(error);
    return { ...before, trouble };
  }
}

function draw(world: World, seen: FleetSeen): void {
  const { out, clock } = world;
  const lines = topLines(seen, clock.nowMs(), out.columns).slice(0, rowsOf(world));
  out.write(`${screen.home}${lines.map((line) => `${line}\x1b[K`).join('\r\n')}\x1b[J`);
}

/** Terminals that do not tell have 24 rows. */
function rowsOf({ out }: World): number {
  return out.rows ?? 24;
}

/** Six calls, of which none grows with the fleet. */
async function look(
  { clock }: World,
  { channel, defaults, server }: Connection,
  most: number,
): Promise<FleetSeen> {
  const deadlineMs = clock.nowMs() + lookTimeoutMs;
  const options = { deadlineMs };
  const hosts = createClient(HostService, channel, defaults);
  const fleet = createClient(FleetService, channel, defaults);
  const count = (groupBy: string, filter: string): Promise<CountHostsResponse> =>
    hosts.countHosts({ groupBy, filter }, options);
  const page = async (filter: string): Promise<Host[]> => {
    const pageSize = Math.max(1, Math.min(most, 1_000));
    const asked = { filter, pageSize, view: HostView.BASIC };
    return (await hosts.listHosts(asked, options)).hosts;
  };
  const [states, runs, faults, running, faulty, { status }] = await Promise.all([
    count('state', ''),
    count('run', 'run:*'),
    count('fault', 'fault:*'),
    page('run:*'),
    page('fault:*'),
    fleet.getFleet({}, options),
  ]);
  return { server, states, runs, faults, running, faulty, freeze: status?.freeze, rows: most };
}
