/** rackwright host claim, unclaim, hold, retry, release, rescue, adopt, service */
import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { HoldScope, HostState } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { buildCommand } from '@stricli/core';
import { UsageError } from '../../failure.ts';
import { resourceName, type SharedFlags } from '../../flags.ts';
import { parseDuration, parseInstant } from '../../output/time.ts';
import type { CliContext } from '../../world.ts';
import { agreeToDestroy, type DestructionFlags, destructionFlags } from '../frame/confirm.ts';
import { listedSteps, type StepListFlags, stepListFlags } from '../frame/step-list.ts';
import {
  hostAliases,
  hostArgument,
  hostFlags,
  type ReasonFlags,
  reasonedCommand,
  reasonFlag,
  requestFlag,
  showHost,
  withHosts,
} from './client.ts';

const aliases = hostAliases;

export const claimHost = reasonedCommand(
  {
    brief: 'Say that you use a host; a host has at most one claim',
    fullDescription:
      'A claimed host is busy: it cannot be deleted, and its goal neither inspects nor cleans it.',
  },
  (hosts, call) => hosts.claimHost(call),
);

export const unclaimHost = reasonedCommand(
  {
    brief: 'Give the claim of a host up',
    fullDescription: 'The goal of the host goes on.',
  },
  (hosts, call) => hosts.unclaimHost(call),
);

export const releaseHost = buildCommand({
  docs: {
    brief: 'Give a provisioned host back: it is switched off, and cleaned by its goal',
    fullDescription:
      'Refused while somebody else claims it or holds its release. Your own claim is given up.',
  },
  parameters: {
    flags: { ...hostFlags, ...destructionFlags, ...requestFlag },
    positional: hostArgument,
    aliases,
  },
  async func(this: CliContext, flags: ReasonFlags & DestructionFlags, id: string) {
    const { world } = this;
    const { reason, requestId } = flags;
    const name = resourceName('hosts', id);
    const host = await withHosts(world, flags, async (hosts) => {
      await agreeToDestroy(world, flags, hosts, name, { kind: 'release' });
      return hosts.releaseHost({ name, reason, requestId });
    });
    showHost(world, flags, host);
  },
});

export const rescueHost = reasonedCommand(
  {
    brief: 'Boot a host into the runner, which touches nothing',
    fullDescription:
      'The goal leaves the host alone until you ask for something else: retry lets it go on.',
  },
  (hosts, call) => hosts.rescueHost(call),
);

export const retryHost = buildCommand({
  docs: {
    brief: 'Start at once what a host’s goal waits for',
    fullDescription:
      'Also when it was given up, when it waits for a silent BMC, and after a rescue.',
  },
  parameters: { flags: { ...hostFlags, ...requestFlag }, positional: hostArgument, aliases },
  async func(this: CliContext, flags: SharedFlags & { requestId: string }, id: string) {
    const call = { name: resourceName('hosts', id), requestId: flags.requestId };
    const host = await withHosts(this.world, flags, (hosts) => hosts.retryHost(call));
    showHost(this.world, flags, host);
  },
});

const scopes = {
  work: HoldScope.WORK,
  power: HoldScope.POWER,
  release: HoldScope.RELEASE,
} as const;

interface HoldFlags extends ReasonFlags {
  readonly scope: keyof typeof scopes;
  readonly until?: string;
  readonly for?: string;
}

export const holdHost = buildCommand({
  docs: {
    brief: 'Keep work, power or release from a host',
    fullDescription:
      'work: nothing new starts; what is under way goes on. power: its power is not switched by ' +
      'request. release: it is neither released nor deleted. A hold ends at its time, or by ' +
      'release-hold.',
  },
  parameters: {
    flags: {
      ...hostFlags,
      ...requestFlag,
      scope: { kind: 'enum', values: ['work', 'power', 'release'], brief: 'What is kept from it' },
      reason: { kind: 'parsed', parse: String, brief: 'Why, one line' },
      until: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'When it ends by itself, as 2026-01-31T12:00:00Z',
        placeholder: 'time',
      },
      for: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'After how long it ends by itself: 90s, 30m, 2h, 3d',
        placeholder: 'duration',
      },
    },
    positional: hostArgument,
    aliases,
  },
  async func(this: CliContext, flags: HoldFlags, id: string) {
    const { reason, requestId } = flags;
    const until = endOf(this.world.clock, flags);
    const call = { name: resourceName('hosts', id), scope: scopes[flags.scope], reason, requestId };
    const host = await withHosts(this.world, flags, (hosts) =>
      hosts.holdHost(until === undefined ? call : { ...call, until }),
    );
    showHost(this.world, flags, host);
  },
});

function endOf(clock: Clock, { until, for: lasts }: HoldFlags): Timestamp | undefined {
  if (until !== undefined && lasts !== undefined) {
    throw new UsageError('give --until or --for, not both');
  }
  if (until !== undefined) {
    const time = parseInstant(until);
    if (time === undefined) {
      throw new UsageError(`--until is "${until}"; it must be a time as 2026-01-31T12:00:00Z`);
    }
    return time;
  }
  if (lasts === undefined) return undefined;
  const durationMs = parseDuration(lasts);
  if (durationMs === undefined) {
    throw new UsageError(`--for is "${lasts}"; it must be a duration as 90s, 30m, 2h or 3d`);
  }
  return timestampFromMs(clock.nowMs() + durationMs);
}

export const adoptHost = buildCommand({
  docs: {
    brief: 'Take in a host that runs already',
    fullDescription:
      'Its BMC is verified; nothing is booted or written. external: in someone else’s care, only ' +
      'its power is switched when asked. provisioned: it can be serviced and released. Make such ' +
      'a host known with --goal manageable: otherwise its goal has it inspected and cleaned.',
  },
  parameters: {
    flags: {
      ...hostFlags,
      ...reasonFlag,
      ...requestFlag,
      to: { kind: 'enum', values: ['external', 'provisioned'], brief: 'What it is' },
    },
    positional: hostArgument,
    aliases,
  },
  async func(
    this: CliContext,
    flags: ReasonFlags & { to: 'external' | 'provisioned' },
    id: string,
  ) {
    const { reason, requestId } = flags;
    const to = flags.to === 'external' ? HostState.EXTERNAL : HostState.PROVISIONED;
    const name = resourceName('hosts', id);
    const host = await withHosts(this.world, flags, (hosts) =>
      hosts.adoptHost({ name, to, reason, requestId }),
    );
    showHost(this.world, flags, host);
  },
});

export const serviceHost = buildCommand({
  docs: {
    brief: 'Run the steps given without changing what a host is used for',
    fullDescription:
      'The runner is booted only for steps that need it; a provisioned host is on again ' +
      'afterwards. An available host stays available only if no step is destructive.',
  },
  parameters: {
    flags: { ...hostFlags, ...requestFlag, ...stepListFlags },
    positional: hostArgument,
    aliases,
  },
  async func(
    this: CliContext,
    flags: SharedFlags & StepListFlags & { requestId: string },
    id: string,
  ) {
    const steps = await listedSteps(this.world, flags);
    if (steps.length === 0) throw new UsageError('give at least one --step, or --steps FILE');
    const name = resourceName('hosts', id);
    const host = await withHosts(this.world, flags, (hosts) =>
      hosts.serviceHost({ name, steps, requestId: flags.requestId }),
    );
    showHost(this.world, flags, host);
  },
});
