/** rackwright host claim, unclaim, hold, retry, release, rescue, adopt, service */
import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { HoldScope, HostState } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { UsageError } from '../../failure.ts';
import { parseDuration, parseInstant } from '../../output/time.ts';
import { listedSteps, type StepListFlags, stepListFlags } from '../frame/step-list.ts';
import { hostVerb } from './verb.ts';

export const claimHost = hostVerb({
  word: 'claim',
  docs: {
    brief: 'Say that you use a host; a host has at most one claim',
    fullDescription:
      'A claimed host is busy: it cannot be deleted, and its goal neither inspects nor cleans it.',
  },
  flags: {},
  hasReason: true,
  prepare: () => ({ ask: (hosts, call) => hosts.claimHost(call) }),
});

export const unclaimHost = hostVerb({
  word: 'unclaim',
  docs: {
    brief: 'Give the claim of a host up',
    fullDescription: 'The goal of the host goes on.',
  },
  flags: {},
  hasReason: true,
  prepare: () => ({ ask: (hosts, call) => hosts.unclaimHost(call) }),
});

export const releaseHost = hostVerb({
  word: 'release',
  docs: {
    brief: 'Give a provisioned host back: it is switched off, and cleaned by its goal',
    fullDescription:
      'Refused while somebody else claims it or holds its release. Your own claim is given up. ' +
      '--wait waits until the host is where its goal leads it.',
  },
  flags: {},
  hasReason: true,
  waitsFor: 'goal',
  prepare: () => ({
    loss: { kind: 'release' },
    ask: (hosts, call) => hosts.releaseHost(call),
  }),
});

export const rescueHost = hostVerb({
  word: 'rescue',
  docs: {
    brief: 'Boot a host into the runner, which touches nothing',
    fullDescription:
      'The goal leaves the host alone until you ask for something else: retry lets it go on.',
  },
  flags: {},
  hasReason: true,
  waitsFor: 'run',
  prepare: () => ({ ask: (hosts, call) => hosts.rescueHost(call) }),
});

export const retryHost = hostVerb({
  word: 'retry',
  docs: {
    brief: 'Start at once what a host’s goal waits for',
    fullDescription:
      'Also when it was given up, when it waits for a silent BMC, and after a rescue. --wait ' +
      'waits until the host is where its goal leads it.',
  },
  flags: {},
  hasReason: false,
  waitsFor: 'goal',
  prepare: () => ({
    ask: (hosts, { name, requestId }) => hosts.retryHost({ name, requestId }),
  }),
});

const scopes = {
  work: HoldScope.WORK,
  power: HoldScope.POWER,
  release: HoldScope.RELEASE,
} as const;

interface HoldFlags {
  readonly scope: keyof typeof scopes;
  readonly reason: string;
  readonly until?: string;
  readonly for?: string;
}

export const holdHost = hostVerb<HoldFlags>({
  word: 'hold',
  docs: {
    brief: 'Block work, power or release of a host',
    fullDescription:
      'work: nothing new starts; what is under way goes on. power: its power is not switched by ' +
      'request. release: it is neither released nor deleted. A hold ends at its time, or by ' +
      'release-hold.',
  },
  flags: {
    scope: { kind: 'enum', values: ['work', 'power', 'release'], brief: 'What it blocks' },
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
  hasReason: true,
  prepare: (io, flags) => {
    const until = endOf(io.clock, flags);
    const scope = scopes[flags.scope];
    const end = until === undefined ? {} : { until };
    return { ask: (hosts, call) => hosts.holdHost({ ...call, scope, ...end }) };
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

export const adoptHost = hostVerb<{ readonly to: 'external' | 'provisioned' }>({
  word: 'adopt',
  docs: {
    brief: 'Take in a host that runs already',
    fullDescription:
      'Its BMC is verified; nothing is booted or written. external: in someone else’s care, only ' +
      'its power is switched when asked. provisioned: it can be serviced and released. Make such ' +
      'a host known with --goal manageable: otherwise its goal has it inspected and cleaned.',
  },
  flags: { to: { kind: 'enum', values: ['external', 'provisioned'], brief: 'What it is' } },
  hasReason: true,
  waitsFor: 'run',
  prepare: (_snapshot, { to: word }) => {
    const to = word === 'external' ? HostState.EXTERNAL : HostState.PROVISIONED;
    return { ask: (hosts, call) => hosts.adoptHost({ ...call, to }) };
  },
});

export const serviceHost = hostVerb<StepListFlags>({
  word: 'service',
  docs: {
    brief: 'Run the steps given without changing what a host is used for',
    fullDescription:
      'The runner is booted only for steps that need it; a provisioned host is on again ' +
      'afterwards. An available host stays available only if no step is destructive.',
  },
  flags: stepListFlags,
  hasReason: false,
  waitsFor: 'run',
  prepare: async (io, flags) => {
    const steps = await listedSteps(io, flags);
    if (steps.length === 0) throw new UsageError('give at least one --step, or --steps FILE');
    return {
      ask: (hosts, { name, requestId }) => hosts.serviceHost({ name, steps, requestId }),
    };
  },
});
