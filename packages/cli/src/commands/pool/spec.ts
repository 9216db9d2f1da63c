/** What flags, or a file, say of a pool. */
import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  HostSelectorSchema,
  type Pool,
  type PoolAmount,
  PoolAmountSchema,
  PoolSchema,
  type PoolSpec,
  PoolSpecSchema,
  RolloutGateSchema,
  type RolloutPolicy,
  RolloutPolicySchema,
  RolloutWindowSchema,
} from '@rackwright/messages';
import { UsageError } from '../../failure.ts';
import {
  labelChange,
  parseMapChange,
  parsePair,
  parseWhole,
  resourceName,
  textFlag,
} from '../../flags.ts';
import { parseDuration } from '../../output/time.ts';
import type { World } from '../../world.ts';
import { type DeployFlags, deployFlags, deployFrom } from '../host/deploy-spec.ts';

const texts = (brief: string, placeholder: string) =>
  ({ ...textFlag(brief, placeholder), variadic: true }) as const;

/** Flags that say what a pool shall be. */
export const poolFlags = {
  image: textFlag('OCI reference by tag or digest, or https://HOST/PATH#sha256=HEX', 'image'),
  host: texts('Id of a host that it may hold; none: any of the others', 'host'),
  rack: textFlag('Id of the rack whose hosts it may hold; none: of any rack', 'rack'),
  label: texts(
    'Label of the hosts that it may hold, NAME=VALUE; NAME- drops one; none: whatever',
    'name=value',
  ),
  ownLabel: texts('Label of the pool itself, NAME=VALUE; NAME- removes it, none all', 'name=value'),
  size: { ...textFlag('So many of them; unset or all means all', 'count'), parse: wholeOr('all') },
  maxUnavailable: textFlag('Hosts out at once, as 2 or 25%; none means 1, 0 stops', 'amount'),
  perRack: { ...textFlag('The same within one rack, or none', 'count'), parse: wholeOr('none') },
  failureThreshold: textFlag(
    'Failed hosts that stop the rollout, as 2 or 5%; none means 5%, but at least 2',
    'amount',
  ),
  soak: textFlag('How long a host has to be healthy, as 10m, or none', 'duration'),
  window: texts('When hosts may be taken out: "0 2 * * 6 for 4h in Europe/Berlin"', 'window'),
  gate: textFlag('"approval": a person is asked before each host in service; or none', 'gate'),
  gateDeadline: textFlag('How long the gate is waited for, as 8h; none means 24h', 'duration'),
  rollback: {
    kind: 'boolean',
    optional: true,
    brief: 'Go back to the image before when too many hosts fail',
  },
  gateWebhook: textFlag('URL that is asked before each host in service; or none', 'url'),
  ...deployFlags,
  pin: texts(
    'Keep a host to an image by digest, OCI or URL, HOST=IMAGE; none: no host',
    'host=image',
  ),
  unpin: texts('Id of a host that keeps to no image of its own any more', 'host'),
} as const;

/** Values of `poolFlags`. */
export interface PoolFlags extends DeployFlags {
  readonly image?: string;
  readonly host?: readonly string[];
  readonly rack?: string;
  readonly label?: readonly string[];
  readonly ownLabel?: readonly string[];
  readonly size?: number | 'all';
  readonly maxUnavailable?: string;
  readonly perRack?: number | 'none';
  readonly failureThreshold?: string;
  readonly soak?: string;
  readonly window?: readonly string[];
  readonly gate?: string;
  readonly gateDeadline?: string;
  readonly gateWebhook?: string;
  readonly rollback?: boolean;
  readonly pin?: readonly string[];
  readonly unpin?: readonly string[];
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
  const said: Said = (value, path, set) => {
    if (value === undefined) return;
    set(value);
    paths.push(path);
  };
  sayHosts(spec, flags, said, paths);
  const own = parseMapChange('--own-label', 'labels', flags.ownLabel, parseOwnLabels);
  paths.push(...own.paths);
  said(flags.image, 'spec.image', (image) => (spec.image = image));
  said(flags.size, 'spec.size', (size) => {
    if (size !== 'all') spec.size = size;
  });
  sayPins(spec, flags, paths);
  said(flags.maxUnavailable, 'spec.rollout.max_unavailable', (amount) => {
    const wanted = amountOf('--max-unavailable', amount);
    if (wanted !== undefined) policy.maxUnavailable = wanted;
  });
  said(flags.perRack, 'spec.rollout.max_unavailable_per_rack', (count) => {
    if (count !== 'none') policy.maxUnavailablePerRack = count;
  });
  said(flags.failureThreshold, 'spec.rollout.failure_threshold', (amount) => {
    const wanted = amountOf('--failure-threshold', amount);
    if (wanted !== undefined) policy.failureThreshold = wanted;
  });
  said(flags.soak, 'spec.rollout.soak', (soak) => {
    if (soak !== 'none') policy.soak = durationOf('--soak', soak);
  });
  said(flags.window, 'spec.rollout.windows', (windows) => {
    policy.windows = unlessNone(windows).map(windowOf);
  });
  said(flags.rollback, 'spec.rollout.rollback', (rollback) => (policy.rollback = rollback));
  sayGate(policy, flags, said);
  if (paths.some((path) => path.startsWith('spec.rollout'))) spec.rollout = policy;
  return { pool: create(PoolSchema, { name, spec, labels: own.set }), paths };
}

/** Takes a value that was given, and notes its path. */
type Said = <T>(value: T | undefined, path: string, set: (value: T) => void) => void;

function parseOwnLabels(texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(texts.map((text) => parsePair('--own-label', text)));
}

/** Each part by itself: what is left unsaid of a selector still narrows it. */
function sayHosts(
  spec: PoolSpec,
  { host, rack, label }: PoolFlags,
  said: Said,
  paths: string[],
): void {
  if (host === undefined && rack === undefined && label === undefined) return;
  const hosts = create(HostSelectorSchema);
  said(host, 'spec.hosts.names', (names) => {
    hosts.names = unlessNone(names).map((each) => resourceName('hosts', each));
  });
  said(
    rack,
    'spec.hosts.rack',
    (id) => (hosts.rack = id === 'none' ? '' : resourceName('racks', id)),
  );
  const labels = labelChange(label, 'spec.hosts.labels');
  hosts.labels = labels.set;
  paths.push(...labels.paths);
  spec.hosts = hosts;
}

/** Host by host: the pins of others stay. */
function sayPins(spec: PoolSpec, { pin = [], unpin = [] }: PoolFlags, paths: string[]): void {
  if (pin.join() === 'none') {
    paths.push('spec.pins');
    return;
  }
  const pinned = pin.map((each) => {
    const [host, image] = parsePair('--pin', each, 'HOST=IMAGE, or none');
    return [resourceName('hosts', host), image] as const;
  });
  const freed = unpin.map((host) => resourceName('hosts', host));
  spec.pins = Object.fromEntries(pinned);
  const both = freed.find((host) => spec.pins[host] !== undefined);
  if (both !== undefined) throw new UsageError(`--pin and --unpin both name ${both}`);
  for (const host of [...Object.keys(spec.pins), ...freed]) paths.push(`spec.pins.\`${host}\``);
}

function sayGate(
  policy: RolloutPolicy,
  { gate, gateDeadline, gateWebhook }: PoolFlags,
  said: Said,
): void {
  if (gate !== undefined && gate !== 'approval' && gate !== 'none') {
    const right = 'it must be approval or none; a webhook is given by --gate-webhook URL';
    throw new UsageError(`--gate is "${gate}"; ${right}`);
  }
  // Nobody is asked any more, unless a webhook is named at once.
  const isGone = gate === 'none' && (gateWebhook ?? 'none') === 'none';
  if (isGone && gateDeadline !== undefined) {
    throw new UsageError('--gate none leaves nothing that --gate-deadline is for');
  }
  if (isGone) {
    said(gate, 'spec.rollout.gate', () => {});
    return;
  }
  const wanted = create(RolloutGateSchema);
  const path = 'spec.rollout.gate';
  said(gate, `${path}.approval`, (who) => (wanted.approval = who === 'approval'));
  said(
    gateWebhook,
    `${path}.webhook_url`,
    (url) => (wanted.webhookUrl = url === 'none' ? '' : url),
  );
  said(gateDeadline, `${path}.deadline`, (deadline) => {
    if (deadline !== 'none') wanted.deadline = durationOf('--gate-deadline', deadline);
  });
  if ((gate ?? gateWebhook ?? gateDeadline) !== undefined) policy.gate = wanted;
}

function unlessNone(given: readonly string[]): readonly string[] {
  return given.join() === 'none' ? [] : given;
}

function wholeOr<W extends string>(word: W) {
  return (text: string): number | W => (text === word ? word : parseWhole(text));
}

function amountOf(flag: string, given: string): PoolAmount | undefined {
  if (given === 'none') return undefined;
  const [, digits, sign] = /^(\d{1,4})(%?)$/.exec(given) ?? [];
  if (digits === undefined) {
    throw new UsageError(
      `${flag} is "${given}"; it must be a number or a percentage, 2 or 25%, or none`,
    );
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
