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
import type { CliContext, CommandIo } from '../../command-io.ts';
import { connectionFlags } from '../../flags.ts';
import { type FleetOverview, topLines } from '../../output/top.ts';
import type { Connection, ConnectionFlags } from '../../settings.ts';
import { withConnection } from '../frame/calls.ts';
import { pause } from '../frame/pause.ts';
import { parseTimeout } from '../frame/wait.ts';

/** Lines of each list without a terminal, and calls that one look may take, milliseconds. */
const linesElsewhere = 50;
const refreshTimeoutMs = 10_000;

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
        brief: 'Time between two readings, as 2 or 1m',
        placeholder: 'time',
      },
      once: { kind: 'boolean', default: false, withNegated: false, brief: 'Print it once' },
    },
  },
  async func(this: CliContext, flags: TopFlags) {
    const { io } = this;
    await withConnection(io, flags, async (connection) => {
      const { columns } = io.out;
      if (flags.once || columns === undefined) {
        const seen = await refresh(io, connection, linesElsewhere);
        for (const line of topLines(seen, io.clock.nowMs(), columns)) {
          io.out.write(`${line}\n`);
        }
      } else await watchScreen(io, connection, flags.interval * 1_000);
    });
  },
});

/** Draws again and again. A failed request is shown above the last known state. */
async function watchScreen(
  io: CommandIo,
  connection: Connection,
  intervalMs: number,
): Promise<void> {
  const { out, signal } = io;
  let seen = await refresh(io, connection, rowsOf(io));
  out.write(screen.enter);
  try {
    while (!signal.aborted) {
      draw(io, seen);
      await pause(io, intervalMs);
      if (signal.aborted) break;
      seen = await refreshAgain(io, connection, seen);
    }
  } finally {
    out.write(screen.leave);
  }
}

async function refreshAgain(
  io: CommandIo,
  connection: Connection,
  before: FleetOverview,
): Promise<FleetOverview> {
  try {
    return await refresh(io, connection, rowsOf(io));
  } catch (error) {
    const trouble = errorText(error);
    return { ...before, trouble };
  }
}

function draw(io: CommandIo, seen: FleetOverview): void {
  const { out, clock } = io;
  const lines = topLines(seen, clock.nowMs(), out.columns).slice(0, rowsOf(io));
  out.write(`${screen.home}${lines.map((line) => `${line}\x1b[K`).join('\r\n')}\x1b[J`);
}

/** A terminal that does not report its size has 24 rows. */
function rowsOf({ out }: CommandIo): number {
  return out.rows ?? 24;
}

/** Six calls, of which none grows with the fleet. */
async function refresh(
  { clock }: CommandIo,
  { channel, defaults, server }: Connection,
  most: number,
): Promise<FleetOverview> {
  const deadlineMs = clock.nowMs() + refreshTimeoutMs;
  const options = { deadlineMs };
  const hosts = createClient(HostService, channel, defaults);
  const fleet = createClient(FleetService, channel, defaults);
  const count = (groupBy: string, filter: string): Promise<CountHostsResponse> =>
    hosts.countHosts({ groupBy, filter }, options);
  const page = async (filter: string): Promise<Host[]> => {
    const pageSize = Math.max(1, Math.min(most, 1_000));
    const query = { filter, pageSize, view: HostView.BASIC };
    return (await hosts.listHosts(query, options)).hosts;
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
