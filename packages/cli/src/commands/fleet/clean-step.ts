/** rackwright fleet clean-step …: programs of the site's own in every automatic clean. */
import { clone, create } from '@bufbuild/protobuf';
import { type Duration, durationFromMs } from '@bufbuild/protobuf/wkt';
import { type OwnCleanStep, OwnCleanStepSchema } from '@rackwright/messages';
import { buildCommand, buildRouteMap } from '@stricli/core';
import type { CliContext } from '../../command-io.ts';
import { UsageError } from '../../failure.ts';
import { idArgument, parsePair, parseWhole, type SharedFlags } from '../../flags.ts';
import { ownStepColumns } from '../../output/own-step.ts';
import { parseDuration } from '../../output/time.ts';
import { sharedAliases as aliases, sharedFlags } from '../frame/frames.ts';
import { listField, without } from './list-field.ts';

interface OwnStepFlags extends SharedFlags {
  readonly image?: string;
  readonly priority?: number;
  readonly argument?: readonly string[];
  readonly environment?: readonly string[];
  readonly directory?: string;
  readonly timeout?: string;
  readonly retries?: number;
  readonly onFailure?: string;
  readonly onTimeout?: string;
  readonly idempotent?: boolean;
  readonly description?: string;
}

const steps = listField<OwnCleanStep>({
  path: 'spec.own_clean_steps',
  of: ({ ownCleanSteps }) => ownCleanSteps,
  as: (ownCleanSteps) => ({ ownCleanSteps }),
  columns: ownStepColumns,
});

const positional = idArgument('name', 'of the step; lists name it own.NAME');

const text = (brief: string, placeholder: string) =>
  ({ kind: 'parsed', parse: String, optional: true, brief, placeholder }) as const;
const texts = (brief: string, placeholder: string) =>
  ({ ...text(brief, placeholder), variadic: true }) as const;
const whole = (brief: string) =>
  ({ kind: 'parsed', parse: parseWhole, optional: true, brief, placeholder: 'number' }) as const;

const policy = 'fail, continue or hold (for a person)';

const setStep = buildCommand({
  docs: {
    brief: 'Set a program of your own for every automatic clean; values that are not given stay',
    fullDescription:
      'Set a program of your own for every automatic clean. It comes in an image, by digest, and ' +
      'runs in the runner; `fleet update --image-repository` allows its image. It always runs ' +
      'before disks are erased, and the runner boots anew between. Its priority, 100 unless ' +
      'given, orders it among the other steps; with 0 it runs only in lists that name it, and ' +
      '`--priority own.NAME=0` of a host, a pool or the fleet disables it there. Values that are ' +
      'not given stay; the word none clears arguments, environment, directory and timeout.',
  },
  parameters: {
    flags: {
      ...sharedFlags,
      image: text('REGISTRY/REPOSITORY@sha256:HEX', 'image'),
      priority: whole('Position among the steps of a clean, 0 to 1000; higher ones go first'),
      argument: texts('Argument of the program; repeatable, replaces all arguments', 'text'),
      environment: texts(
        'NAME=VALUE that it sees; repeatable, replaces all; no secrets',
        'name=value',
      ),
      directory: text('Where it works, an absolute path in the image', 'path'),
      timeout: text('How long one attempt may take, as 90s, 5m or 2h', 'time'),
      retries: whole('Further attempts after one that failed or timed out, 0 to 10'),
      onFailure: text(`When no attempt is left: ${policy}`, 'what'),
      onTimeout: text(`When the last attempt timed out: ${policy}`, 'what'),
      idempotent: {
        kind: 'boolean',
        optional: true,
        brief: 'It may run again after it was interrupted',
      },
      description: text('What it is for', 'text'),
    },
    positional,
    aliases,
  },
  async func(this: CliContext, flags: OwnStepFlags, name: string) {
    const givenChange = changeOf(flags);
    await steps.change(this.io, flags, (now) => withChange(now, name, givenChange));
  },
});

/** The word that clears a value. */
const none = 'none';

type Plain = Omit<OwnCleanStep, '$typeName' | '$unknown' | 'name' | 'timeout'>;

type StepChange = Partial<Plain> & { readonly timeout?: Duration | typeof none };

/**
 * The list with one step changed by the flags; its other fields stay, and so do the other steps.
 */
export function withChange(
  now: readonly OwnCleanStep[],
  name: string,
  change: StepChange,
): OwnCleanStep[] {
  const before = now.find((step) => step.name === name);
  const next = clone(OwnCleanStepSchema, before ?? create(OwnCleanStepSchema, { name }));
  const { timeout, ...plain } = change;
  Object.assign(next, plain);
  if (timeout === none) delete next.timeout;
  else if (timeout !== undefined) next.timeout = timeout;
  return before === undefined ? [...now, next] : now.map((step) => (step === before ? next : step));
}

/** The flags' meaning. Throws `UsageError`. */
export function changeOf(flags: Omit<OwnStepFlags, keyof SharedFlags>): StepChange {
  const { argument, environment, directory, timeout, ...plain } = flags;
  const { image, priority, retries, onFailure, onTimeout, idempotent, description } = plain;
  const given = { image, priority, retries, onFailure, onTimeout, idempotent, description };
  const pairs = (environment?.join() === none ? [] : environment) ?? [];
  return {
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
    ...(argument === undefined ? {} : { arguments: argument.join() === none ? [] : [...argument] }),
    ...(environment === undefined
      ? {}
      : { environment: Object.fromEntries(pairs.map((pair) => parsePair('--environment', pair))) }),
    ...(directory === undefined ? {} : { directory: directory === none ? '' : directory }),
    ...timeoutOf(timeout),
  };
}

function timeoutOf(text: string | undefined): StepChange {
  if (text === undefined) return {};
  if (text === none) return { timeout: none };
  const ms = parseDuration(text);
  if (ms === undefined) throw new UsageError(`--timeout is "${text}"; write it like 90s, 5m or 2h`);
  return { timeout: durationFromMs(ms) };
}

const removeStep = buildCommand({
  docs: { brief: 'Run a program of your own in no further clean' },
  parameters: { flags: sharedFlags, positional, aliases },
  async func(this: CliContext, flags: SharedFlags, name: string) {
    const unknown = (names: readonly string[]): string => {
      const known = names.length === 0 ? 'there is none' : `there is ${names.join(', ')}`;
      return `no clean step of your own is called "${name}"; ${known}`;
    };
    const left = (now: readonly OwnCleanStep[]) => without(now, (step) => step.name, name, unknown);
    await steps.change(this.io, flags, left);
  },
});

const listSteps = buildCommand({
  docs: { brief: 'List your own programs in every automatic clean' },
  parameters: { flags: sharedFlags, aliases },
  func(this: CliContext, flags: SharedFlags) {
    return steps.show(this.io, flags);
  },
});

/** `fleet clean-step …` */
export const cleanStepRoutes = buildRouteMap({
  routes: { set: setStep, remove: removeStep, list: listSteps },
  docs: { brief: 'Programs of your own in every automatic clean' },
});
