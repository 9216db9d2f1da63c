/** What flags, or a file, say of a pool. */
import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  HostSelectorSchema,
  type Pool,
  type PoolAmount,
  PoolAmountSchema,
  PoolSchema,
  PoolSpecSchema,
  RolloutGateSchema,
  RolloutPolicySchema,
  RolloutWindowSchema,
} from '@rackwright/api';
import { UsageError } from '../failure.ts';
import { parseLabels, parsePair, parseWhole, resourceName, textFlag } from '../flags.ts';
import { parseDuration } from '../output/time.ts';
import type { World } from '../world.ts';
import { type DeployFlags, deployFlags, deployFrom } from './deploy-spec.ts';

const texts = (brief: string, placeholder: string) =>
  ({ ...textFlag(brief, placeholder), variadic: true }) as const;

/** Flags that say what a pool shall be. */
export const poolFlags = {
  image: textFlag('OCI image by tag or digest', 'image'),
  host: texts('Id of a host that it may hold', 'host'),
  rack: textFlag('Id of the rack whose hosts it may hold', 'rack'),
  label: texts('Label of the hosts that it may hold, NAME=VALUE', 'name=value'),
  size: { ...textFlag('So many of them; unset means all', 'count'), parse: parseWhole },
  maxUnavailable: textFlag('Hosts out at once, as 2 or 25%; unset means 1, 0 stops', 'amount'),
  perRack: { ...textFlag('The same within one rack', 'count'), parse: parseWhole },
  failureThreshold: textFlag('Failed hosts that stop the rollout, as 2 or 5%', 'amount'),
  soak: textFlag('How long a host has to be healthy, as 10m', 'duration'),
  window: texts('When hosts may be taken out: "0 2 * * 6 for 4h in Europe/Berlin"', 'window'),
  gate: {
    kind: 'enum',
    values: ['approval', 'none'],
    optional: true,
    brief: 'Whether a person is asked before a host in service is taken out',
  },
  gateDeadline: textFlag('How long the gate is waited for, as 8h', 'duration'),
  rollback: {
    kind: 'boolean',
    optional: true,
    brief: 'Go back to the image before when too many hosts fail',
  },
  gateWebhook: textFlag('URL that is asked before each host in service is taken out', 'url'),
  ...deployFlags,
  pin: texts('Keep a host to an image by digest, HOST=IMAGE', 'host=image'),
} as const;

/** Values of `poolFlags`. */
export interface PoolFlags extends DeployFlags {
  readonly image?: string;
  readonly host?: readonly string[];
  readonly rack?: string;
  readonly label?: readonly string[];
  readonly size?: number;
  readonly maxUnavailable?: string;
  readonly perRack?: number;
  readonly failureThreshold?: string;
  readonly soak?: string;
  readonly window?: readonly string[];
  readonly gate?: 'approval' | 'none';
  readonly gateDeadline?: string;
  readonly gateWebhook?: string;
  readonly rollback?: boolean;
  readonly pin?: readonly string[];
}

export interface WantedPool {
  readonly pool: Pool;
  /** What was said, as paths of an update. */
  readonly paths: string[];
}

/** The pool that the flags and the files that they name speak of. Throws `UsageError`. */
export async function poolFrom(world: World, name: string, flags: PoolFlags): Promise<WantedPool> {
  const { deploy, paths } = await deployFrom(world, flags);
  const wanted = poolOf(name, flags);
  if (paths.length === 0 || wanted.pool.spec === undefined) return wanted;
  wanted.pool.spec.deploy = deploy;
  return { ...wanted, paths: [...wanted.paths, ...paths.map((path) => `spec.deploy.${path}`)] };
}

/** The same, but for how the image is deployed. */
export function poolOf(name: string, flags: PoolFlags): WantedPool {
  const paths: string[] = [];
  const spec = create(PoolSpecSchema);
  const policy = create(RolloutPolicySchema);
  const said = <T>(value: T | undefined, path: string, set: (value: T) => void): void => {
    if (value === undefined) return;
    set(value);
    paths.push(path);
  };
  const { host, rack, label } = flags;
  if (host !== undefined || rack !== undefined || label !== undefined) {
    spec.hosts = create(HostSelectorSchema, {
      names: (host ?? []).map((each) => resourceName('hosts', each)),
      rack: rack === undefined ? '' : resourceName('racks', rack),
      labels: parseLabels(label ?? []),
    });
    paths.push('spec.hosts');
  }
  said(flags.image, 'spec.image', (image) => (spec.image = image));
  said(flags.size, 'spec.size', (size) => (spec.size = size));
  said(flags.pin, 'spec.pins', (pins) => (spec.pins = pinsOf(pins)));
  said(flags.maxUnavailable, 'spec.rollout.max_unavailable', (amount) => {
    policy.maxUnavailable = amountOf('--max-unavailable', amount);
  });
  said(flags.perRack, 'spec.rollout.max_unavailable_per_rack', (count) => {
    policy.maxUnavailablePerRack = count;
  });
  said(flags.failureThreshold, 'spec.rollout.failure_threshold', (amount) => {
    policy.failureThreshold = amountOf('--failure-threshold', amount);
  });
  said(flags.soak, 'spec.rollout.soak', (soak) => {
    policy.soak = durationOf('--soak', soak);
  });
  said(flags.window, 'spec.rollout.windows', (windows) => {
    policy.windows = windows.join() === 'none' ? [] : windows.map(windowOf);
  });
  said(flags.rollback, 'spec.rollout.rollback', (rollback) => (policy.rollback = rollback));
  said(flags.gate ?? flags.gateWebhook ?? flags.gateDeadline, 'spec.rollout.gate', () => {
    policy.gate = gateOf(flags);
  });
  if (paths.some((path) => path.startsWith('spec.rollout'))) spec.rollout = policy;
  return { pool: create(PoolSchema, { name, spec }), paths };
}

function gateOf({ gate, gateDeadline, gateWebhook }: PoolFlags) {
  if (gate === undefined && gateWebhook === undefined) {
    throw new UsageError('--gate-deadline needs --gate approval or --gate-webhook URL');
  }
  return create(RolloutGateSchema, {
    approval: gate === 'approval',
    webhookUrl: gateWebhook === 'none' ? '' : (gateWebhook ?? ''),
    ...(gateDeadline === undefined
      ? {}
      : { deadline: durationOf('--gate-deadline', gateDeadline) }),
  });
}

function pinsOf(pins: readonly string[]): Record<string, string> {
  if (pins.join() === 'none') return {};
  const pairs = pins.map((pin) => parsePair('--pin', pin));
  return Object.fromEntries(pairs.map(([host, image]) => [resourceName('hosts', host), image]));
}

function amountOf(flag: string, given: string): PoolAmount {
  const [, digits, sign] = /^(\d{1,4})(%?)$/.exec(given) ?? [];
  if (digits === undefined) {
    throw new UsageError(`${flag} is "${given}"; it must be a number or a percentage, 2 or 25%`);
  }
  const value = Number(digits);
  const amount =
    sign === '%' ? { case: 'percent' as const, value } : { case: 'count' as const, value };
  return create(PoolAmountSchema, { amount });
}

function durationOf(flag: string, given: string) {
  const ms = parseDuration(given);
  if (ms !== undefined) return durationFromMs(ms);
  throw new UsageError(`${flag} is "${given}"; it must be like 90s, 30m, 2h or 3d`);
}

/** "0 2 * * 6 for 4h in Europe/Berlin" */
function windowOf(given: string) {
  const [, cron, lasts, timeZone = ''] = /^(.+) for (\S+)(?: in (\S+))?$/.exec(given) ?? [];
  if (cron === undefined || lasts === undefined) {
    const right = '"MINUTE HOUR DAY MONTH WEEKDAY for DURATION in ZONE"';
    throw new UsageError(`--window is "${given}"; it must be ${right}, or none`);
  }
  const duration = durationOf('--window', lasts);
  return create(RolloutWindowSchema, { cron, duration, timeZone });
}
