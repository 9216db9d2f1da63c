/**
 * rackwright fleet status: how many hosts are in each state, the failures and their reasons, and
 * the freezes.
 */
import { toJson } from '@bufbuild/protobuf';
import { type CountHostsResponse, CountHostsResponseSchema, counted } from '@rackwright/messages';
import { buildCommand } from '@stricli/core';
import type { CliContext, CommandIo } from '../../command-io.ts';
import { connectionFlags, outputFlag, type SharedFlags } from '../../flags.ts';
import { isForPrograms, printLines, printTable, printValue } from '../../output/show.ts';
import { readFrozen } from '../frame/freezes.ts';
import { withHosts } from '../host/client.ts';

/** The counts: the field, and which hosts. */
const questions = {
  state: { groupBy: 'state', filter: '' },
  run: { groupBy: 'run', filter: 'run:*' },
  'waits for': { groupBy: 'waiting', filter: 'waiting:*' },
  fault: { groupBy: 'fault', filter: 'fault:*' },
  'last failure': { groupBy: 'failure', filter: 'failure:*' },
} as const;
type Question = keyof typeof questions;

interface Line {
  readonly subject: string;
  readonly value: string;
  readonly hosts: string;
}

export const fleetStatus = buildCommand({
  docs: {
    brief: 'Count hosts by state, what they wait for and what fails, and show freezes',
    fullDescription:
      'Count hosts by state, what they wait for and what fails, and show freezes.\n\n' +
      "To see the hosts of a line: host list --filter 'failure = VALUE', or fault:VALUE, " +
      'waiting = VALUE, run = VALUE.',
  },
  parameters: { flags: { ...connectionFlags, ...outputFlag }, aliases: { o: 'output' } },
  async func(this: CliContext, flags: SharedFlags) {
    const { io } = this;
    const counts = await withHosts(io, flags, async (hosts) => {
      const all: [Question, CountHostsResponse][] = [];
      for (const [subject, asked] of Object.entries(questions)) {
        all.push([subject as Question, await hosts.countHosts(asked)]);
      }
      return all;
    });
    const freezes = await readFrozen(io, flags);
    if (isForPrograms(flags.output)) {
      const shown = counts.map(([subject, count]) => [
        subject,
        toJson(CountHostsResponseSchema, count),
      ]);
      const all = { ...Object.fromEntries(shown), frozen: Object.fromEntries(freezes) };
      printValue(io, flags.output, all);
      return;
    }
    printStatus(io, flags, counts, freezes);
  },
});

function printStatus(
  io: CommandIo,
  { output }: SharedFlags,
  counts: readonly (readonly [Question, CountHostsResponse])[],
  freezes: readonly (readonly [string, string])[],
): void {
  const [[, { total, unreadable }] = ['', { total: 0, unreadable: 0 }]] = counts;
  const lines = counts.flatMap(([subject, { groups, groupsLeftOut }]): Line[] => [
    ...groups.map(({ value, count }) => ({ subject, value, hosts: String(count) })),
    ...(groupsLeftOut > 0 ? [{ subject, value: `${groupsLeftOut} more`, hosts: '' }] : []),
  ]);
  const lost = unreadable > 0 ? `, and ${unreadable} that cannot be read` : '';
  printLines(io, [`${counted(total, 'host')}${lost}`]);
  if (lines.length > 0) {
    printTable(
      io,
      output,
      [
        { title: 'WHAT', value: ({ subject }) => subject },
        { title: 'VALUE', value: ({ value }) => value, widthMin: 20 },
        { title: 'HOSTS', value: ({ hosts }) => hosts },
      ],
      lines,
    );
  }
  printLines(
    io,
    freezes.map(([name, why]) => `${name}: ${why}`),
  );
}
