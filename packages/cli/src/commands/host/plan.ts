/** rackwright host plan …, host start */
import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  DeletionMode,
  type PlanRunRequestSchema,
  PlanSchema,
  PlanService,
} from '@rackwright/messages';
import { createClient } from '@rackwright/rpc';
import { buildCommand, buildRouteMap } from '@stricli/core';
import type { CliContext, CommandIo } from '../../command-io.ts';
import { UsageError } from '../../failure.ts';
import { parsePair, resourceName, type SharedFlags } from '../../flags.ts';
import { planLines } from '../../output/plan.ts';
import { isForPrograms, printAs, printLines } from '../../output/show.ts';
import { callsOf, withConnection } from '../frame/calls.ts';
import { listedSteps, type StepListFlags, stepListFlags } from '../frame/step-list.ts';
import { checkWait, type WaitFlags, waitFlags } from '../frame/wait.ts';
import {
  hostAliases,
  hostArgument,
  hostFlags,
  reasonFlag,
  requestFlag,
  showHost,
} from './client.ts';
import { imageArguments } from './deploy.ts';
import { type DeployFlags, deployFlags, deployFrom } from './deploy-spec.ts';
import { workDone } from './wait.ts';

const aliases = hostAliases;

const withPlans = callsOf(PlanService);

type PlannedRunInit = NonNullable<
  Extract<MessageInitShape<typeof PlanRunRequestSchema>, { readonly $typeName?: never }>['run']
>;

/** Asks for a plan and prints it. */
async function plan(
  io: CommandIo,
  flags: SharedFlags,
  id: string,
  run: PlannedRunInit,
): Promise<void> {
  const parent = resourceName('hosts', id);
  const answer = await withPlans(io, flags, (plans) => plans.planRun({ parent, run }));
  if (isForPrograms(flags.output)) printAs(io, flags.output, PlanSchema, answer);
  else printLines(io, planLines(answer, io.clock, io.out.columns));
}

const planClean = buildCommand({
  docs: { brief: 'Show what a clean would do: its steps, each disk, what is lost' },
  parameters: { flags: { ...hostFlags, ...stepListFlags }, positional: hostArgument, aliases },
  async func(this: CliContext, flags: SharedFlags & StepListFlags, id: string) {
    const steps = await listedSteps(this.io, flags);
    await plan(this.io, flags, id, { case: 'clean', value: { steps } });
  },
});

const planProvision = buildCommand({
  docs: {
    brief: 'Show what writing an image would do, also onto a host in service',
    fullDescription:
      'Show what writing an image would do: which disk is written over, which stay as they are. ' +
      'For a host in service that is what `host reimage` would do.',
  },
  parameters: { flags: { ...hostFlags, ...deployFlags }, positional: imageArguments, aliases },
  async func(this: CliContext, flags: SharedFlags & DeployFlags, id: string, image: string) {
    const { deploy, paths } = await deployFrom(this.io, flags);
    const value = { image, ...(paths.length === 0 ? {} : { deploy }) };
    await plan(this.io, flags, id, { case: 'provision', value });
  },
});

const planDelete = buildCommand({
  docs: { brief: 'Show what a deletion would do: each run, what is erased, what is left' },
  parameters: {
    flags: {
      ...hostFlags,
      force: { kind: 'boolean', default: false, brief: 'As host delete --force' },
    },
    positional: hostArgument,
    aliases,
  },
  async func(this: CliContext, flags: SharedFlags & { force: boolean }, id: string) {
    const mode = flags.force ? DeletionMode.FORCE : DeletionMode.NORMAL;
    await plan(this.io, flags, id, { case: 'delete', value: { mode } });
  },
});

const planWorkflow = buildCommand({
  docs: { brief: 'Show what a template would do on this host' },
  parameters: {
    flags: {
      ...hostFlags,
      template: { kind: 'parsed', parse: String, brief: 'Id of the template', placeholder: 'id' },
      var: {
        kind: 'parsed',
        parse: String,
        variadic: true,
        optional: true,
        brief: 'NAME=VALUE of a variable; may be repeated',
        placeholder: 'pair',
      },
    },
    positional: hostArgument,
    aliases,
  },
  async func(
    this: CliContext,
    flags: SharedFlags & { template: string; var?: readonly string[] },
    id: string,
  ) {
    const pairs = (flags.var ?? []).map((each) => parsePair('--var', each));
    const template = resourceName('templates', flags.template);
    const value = { template, variables: Object.fromEntries(pairs) };
    await plan(this.io, flags, id, { case: 'workflow', value });
  },
});

/** `host plan …` */
export const planRoutes = buildRouteMap({
  routes: {
    clean: planClean,
    provision: planProvision,
    delete: planDelete,
    workflow: planWorkflow,
  },
  docs: { brief: 'Show a run before it is started; nothing is changed' },
});

/** `host start HOST HASH` */
export const startPlan = buildCommand({
  docs: {
    brief: 'Start exactly the run of a plan',
    fullDescription:
      'Start exactly the run of a plan. Refused when the host, its disks, its policy or the ' +
      'template are not as they were when the plan was made; what has changed is shown. A run ' +
      'that then finds other disks in the host erases none of them.',
  },
  parameters: {
    flags: { ...hostFlags, ...reasonFlag, ...requestFlag, ...waitFlags },
    positional: {
      kind: 'tuple',
      parameters: [
        ...hostArgument.parameters,
        { parse: String, brief: 'Hash of the plan, as host plan shows it', placeholder: 'hash' },
      ],
    },
    aliases,
  },
  async func(
    this: CliContext,
    flags: SharedFlags & WaitFlags & { reason: string; requestId: string },
    id: string,
    hash: string,
  ) {
    checkWait(flags);
    if (!/^[0-9a-f]{64}$/.test(hash)) {
      const right = 'copy all 64 characters from `rackwright host plan`';
      throw new UsageError(`"${hash}" is no plan hash; ${right}`);
    }
    const name = `${resourceName('hosts', id)}/plans/${hash}`;
    const { reason, requestId } = flags;
    const host = await withConnection(this.io, flags, async (connection) => {
      const { channel, defaults } = connection;
      const plans = createClient(PlanService, channel, defaults);
      const started = await plans.startPlan({ name, reason, requestId });
      return workDone(this.io, connection, flags, 'run', started);
    });
    showHost(this.io, flags, host);
  },
});
