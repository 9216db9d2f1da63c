/**
 * rackwright pool plan: what a pool would do, also one that does not exist yet or is not changed
 * yet.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  type PlanRolloutRequestSchema,
  PoolSchema,
  type RolloutPlan,
  RolloutPlanSchema,
} from '@rackwright/messages';
import { buildCommand } from '@stricli/core';
import type { CliContext, CommandIo } from '../../command-io.ts';
import { UsageError } from '../../failure.ts';
import { messageOf } from '../../files/kinds.ts';
import { ifThere } from '../../files/plan.ts';
import { idArgument, resourceName, type SharedFlags, textFlag } from '../../flags.ts';
import { plannedRolloutColumns } from '../../output/pool.ts';
import { isForPrograms, printAs, printLines, printTable } from '../../output/show.ts';
import { readObjectFile } from '../file/apply.ts';
import { sharedFlags } from '../frame/frames.ts';
import { withPools } from './client.ts';

type PlanRolloutRequestInit = MessageInitShape<typeof PlanRolloutRequestSchema>;

/** "plan" */
export const planRollout = buildCommand({
  docs: {
    brief: 'Show in which order the hosts would go; changes nothing',
    fullDescription:
      'With --filename it shows what the pool of that name in the file would do, before ' +
      '`rackwright apply -f` makes or changes it.',
  },
  parameters: {
    flags: { ...sharedFlags, filename: textFlag('File with the pool, or -', 'file') },
    positional: idArgument('pool', 'Id of the pool'),
    aliases: { o: 'output', f: 'filename' },
  },
  async func(this: CliContext, flags: SharedFlags & { filename?: string }, id: string) {
    const { io } = this;
    const name = resourceName('pools', id);
    const { filename } = flags;
    await showDraft(
      io,
      flags,
      filename === undefined ? { name } : await fromFile(io, flags, filename, name),
    );
  },
});

/** Shows the requested plan. */
export async function showDraft(
  io: CommandIo,
  flags: SharedFlags,
  request: PlanRolloutRequestInit,
): Promise<void> {
  showPlan(io, flags, await withPools(io, flags, (pools) => pools.planRollout(request)));
}

async function fromFile(
  io: CommandIo,
  flags: SharedFlags,
  filename: string,
  name: string,
): Promise<PlanRolloutRequestInit> {
  const objects = await readObjectFile(io, filename);
  const object = objects.find((each) => each.name === name);
  if (object === undefined) throw new UsageError(`${filename} has no ${name}`);
  const pool = messageOf(PoolSchema, { name, value: object.value });
  const there = await withPools(io, flags, (pools) => ifThere(() => pools.getPool({ name })));
  return there === undefined ? { pool } : { name, pool, updateMask: { paths: ['*'] } };
}

function showPlan(io: CommandIo, { output }: SharedFlags, plan: RolloutPlan): void {
  if (isForPrograms(output)) {
    printAs(io, output, RolloutPlanSchema, plan);
    return;
  }
  const target = plan.target?.image ?? 'an image that is not resolved yet';
  const stopped = plan.heldBecause === '' ? '' : `; nothing begins now: ${plan.heldBecause}`;
  const headline = `${plan.pool} to ${target}, ${plan.unavailableMax} at once${stopped}`;
  printLines(io, [headline, ...plan.warnings.map((text) => `Note: ${text}`), '']);
  printTable(io, output, plannedRolloutColumns, plan.hosts);
}
