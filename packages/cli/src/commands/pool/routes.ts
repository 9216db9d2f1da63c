/** rackwright pool … */
import { create } from '@bufbuild/protobuf';
import {
  ListDeployHistoryResponseSchema,
  ListPoolHostsResponseSchema,
  ListPoolsResponseSchema,
  type Pool,
  PoolSchema,
  RolloutPolicySchema,
} from '@rackwright/messages';
import { buildCommand, buildRouteMap } from '@stricli/core';
import { briefs } from '../../briefs.ts';
import type { CliContext, CommandIo } from '../../command-io.ts';
import { UsageError } from '../../failure.ts';
import { idArgument, requestFlag, resourceName, type SharedFlags } from '../../flags.ts';
import { deployHistoryColumns, poolColumns, poolHostColumns } from '../../output/pool.ts';
import { isForPrograms, printAs, printLines, printTable } from '../../output/show.ts';
import { allPages } from '../frame/calls.ts';
import { showExplanation } from '../frame/explain.ts';
import { sharedAliases as aliases, listCommand, oneCommand, sharedFlags } from '../frame/frames.ts';
import { checkWait, type WaitFlags, waitFlags } from '../frame/wait.ts';
import { reasonFlag } from '../host/client.ts';
import { type PoolClient, showPool, withPools } from './client.ts';
import { planRollout, showDraft } from './plan.ts';
import { type PoolFlags, poolFlags, poolFrom } from './spec.ts';
import { poolDone } from './wait.ts';
import { watchPool } from './watch.ts';

const positional = idArgument('pool', 'Id of the pool');
const argument = ['pool', 'Id of the pool'] as const;
const one = { collection: 'pools', argument };

const dryRun = {
  kind: 'boolean',
  default: false,
  brief: 'Only show which hosts would go, in which order, and what they lose',
} as const;
const changeFlags = { ...sharedFlags, ...poolFlags, dryRun, ...waitFlags, ...requestFlag };

interface ChangeFlags extends SharedFlags, PoolFlags, WaitFlags {
  readonly dryRun: boolean;
  readonly requestId: string;
}

const createPool = buildCommand({
  docs: {
    brief: 'Make a pool: it claims its hosts and writes its image onto them',
    fullDescription:
      'The pool holds hosts that match all of --host, --rack and --label. What it may hold is ' +
      'written over: hosts that are available, and those that run something and that nobody ' +
      'claims. --dry-run shows whom that means; --paused makes a pool that claims its hosts and ' +
      'writes nothing until it is resumed. Waves, the health timeout, labels, how ' +
      'often a tag is resolved and how much history is shown are given in a file, for ' +
      '`rackwright apply -f`.',
  },
  parameters: {
    flags: {
      ...changeFlags,
      paused: { kind: 'boolean', default: false, brief: 'Write nothing until it is resumed' },
    },
    positional,
    aliases,
  },
  async func(this: CliContext, flags: ChangeFlags & { paused: boolean }, id: string) {
    const name = resourceName('pools', id);
    const { pool } = await poolFrom(this.io, name, flags);
    if (flags.paused && pool.spec !== undefined) {
      pool.spec.rollout ??= create(RolloutPolicySchema);
      pool.spec.rollout.paused = true;
    }
    if (flags.dryRun) {
      await showDraft(this.io, flags, { pool });
      return;
    }
    const { requestId } = flags;
    checkWait(flags);
    const made = await withPools(this.io, flags, async (pools) =>
      poolDone(this.io, pools, flags, await pools.createPool({ poolId: id, pool, requestId })),
    );
    showPool(this.io, flags, made);
  },
});

const updatePool = buildCommand({
  docs: { brief: 'Change a pool; values that are not given stay' },
  parameters: { flags: changeFlags, positional, aliases },
  async func(this: CliContext, flags: ChangeFlags, id: string) {
    const name = resourceName('pools', id);
    const { pool, paths } = await poolFrom(this.io, name, flags);
    if (paths.length === 0) throw new UsageError('nothing is to be changed; see --help');
    if (flags.dryRun) {
      await showDraft(this.io, flags, { name, pool, updateMask: { paths } });
      return;
    }
    const { requestId } = flags;
    checkWait(flags);
    const updateMask = { paths };
    const changed = await withPools(this.io, flags, async (pools) =>
      poolDone(this.io, pools, flags, await pools.updatePool({ pool, updateMask, requestId })),
    );
    showPool(this.io, flags, changed);
  },
});

const getPool = oneCommand<Pool>({
  brief: 'Show one pool, who has a slot, and the newest of its history',
  ...one,
  call: (io, flags, name) => withPools(io, flags, (pools) => pools.getPool({ name })),
  show: showPool,
});

const listPools = listCommand({
  brief: 'List pools',
  read: (io, flags) =>
    withPools(io, flags, (pools) =>
      allPages(
        (pageToken) => pools.listPools({ pageToken }),
        (page) => page.pools,
      ),
    ),
  schema: ListPoolsResponseSchema,
  answer: (pools) => ({ pools }),
  columns: poolColumns,
});

const listHosts = oneCommand({
  brief: 'Say of each host of a pool how far it is and what it waits for',
  ...one,
  call: (io, flags, parent) => withPools(io, flags, (pools) => pools.listPoolHosts({ parent })),
  show: (io, { output }, answer) => {
    if (isForPrograms(output)) printAs(io, output, ListPoolHostsResponseSchema, answer);
    else printTable(io, output, poolHostColumns, answer.hosts);
  },
});

const showHistory = oneCommand({
  brief: 'What was deployed: each digest, on how many hosts, when last',
  ...one,
  call: (io, flags, parent) =>
    withPools(io, flags, (pools) =>
      allPages(
        (pageToken) => pools.listDeployHistory({ parent, pageSize: 1_000, pageToken }),
        (page) => page.entries,
      ),
    ),
  show: (io, { output }, entries) => {
    const schema = ListDeployHistoryResponseSchema;
    if (isForPrograms(output)) printAs(io, output, schema, create(schema, { entries }));
    else printTable(io, output, deployHistoryColumns(io.clock), entries);
  },
});

const explainPool = oneCommand({
  brief: 'What the pool waits for, since when, and what would make it move',
  ...one,
  call: (io, flags, name) => withPools(io, flags, (pools) => pools.explainPool({ name })),
  show: showExplanation,
});

/** Pause or resume. */
function switchCommand(
  brief: string,
  call: (pools: PoolClient, request: { name: string; requestId: string }) => Promise<Pool>,
) {
  return buildCommand({
    docs: { brief },
    parameters: { flags: { ...sharedFlags, ...requestFlag }, positional, aliases },
    async func(this: CliContext, flags: SharedFlags & { requestId: string }, id: string) {
      const { requestId } = flags;
      const request = { name: resourceName('pools', id), requestId };
      showPool(this.io, flags, await withPools(this.io, flags, (pools) => call(pools, request)));
    },
  });
}

const approvePool = buildCommand({
  docs: { brief: 'Let hosts be taken out that wait for an approval of this digest' },
  parameters: {
    flags: {
      ...sharedFlags,
      host: { ...poolFlags.host, brief: 'Only this host; unset means all that wait' },
      ...waitFlags,
      ...requestFlag,
    },
    positional: {
      kind: 'tuple',
      parameters: [
        ...positional.parameters,
        { parse: String, brief: 'The digest, sha256:…', placeholder: 'digest' },
      ],
    },
    aliases,
  },
  async func(
    this: CliContext,
    flags: SharedFlags & WaitFlags & { host?: readonly string[]; requestId: string },
    id: string,
    digest: string,
  ) {
    const name = resourceName('pools', id);
    const hosts = (flags.host ?? []).map((each) => resourceName('hosts', each));
    const { requestId } = flags;
    checkWait(flags);
    const approved = await withPools(this.io, flags, async (pools) =>
      poolDone(this.io, pools, flags, await pools.approvePool({ name, hosts, digest, requestId })),
    );
    showPool(this.io, flags, approved);
  },
});

const deletePool = buildCommand({
  docs: { brief: 'Give the hosts of a pool back, as they are, and remove it' },
  parameters: { flags: { ...sharedFlags, ...reasonFlag, ...requestFlag }, positional, aliases },
  async func(
    this: CliContext,
    flags: SharedFlags & { reason: string; requestId: string },
    id: string,
  ) {
    const { reason, requestId } = flags;
    const name = resourceName('pools', id);
    const gone = await withPools(this.io, flags, (pools) =>
      pools.deletePool({ name, reason, requestId }),
    );
    tellGone(this.io, flags, gone);
  },
});

function tellGone(io: CommandIo, { output }: SharedFlags, gone: Pool): void {
  if (isForPrograms(output)) printAs(io, output, PoolSchema, gone);
  else printLines(io, [`${gone.name} gives its hosts back, and goes then`]);
}

/** All commands on pools. */
export const poolRoutes = buildRouteMap({
  routes: {
    create: createPool,
    get: getPool,
    list: listPools,
    update: updatePool,
    hosts: listHosts,
    history: showHistory,
    plan: planRollout,
    explain: explainPool,
    pause: switchCommand('Take no further host out; what is under way goes on', (pools, request) =>
      pools.pausePool(request),
    ),
    resume: switchCommand('Let a paused pool go on', (pools, request) => pools.resumePool(request)),
    approve: approvePool,
    watch: watchPool,
    delete: deletePool,
  },
  docs: { brief: briefs.pool },
});
