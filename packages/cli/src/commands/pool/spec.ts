/** A pool's fields in flags or in a file. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  HostSelectorSchema,
  type Pool,
  PoolSchema,
  type PoolSpec,
  PoolSpecSchema,
} from '@rackwright/messages';
import type { CommandIo } from '../../command-io.ts';
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
import { field, flagsOf, givenBy, setField, type ValuesOf } from '../frame/fields.ts';
import { type DeployFlags, deployFlags, deployFrom } from '../host/deploy-spec.ts';

const texts = (brief: string, placeholder: string) =>
  ({ ...textFlag(brief, placeholder), variadic: true }) as const;

/** Each field of a pool that a person sets: its flag, its path, and its conversion. */
const fields = {
  host: field(
    texts('Id of a host that it may hold; none: any of the others', 'host'),
    'hosts.names',
    (names) => unlessNone(names).map((each) => resourceName('hosts', each)),
  ),
  rack: field(
    textFlag('Id of the rack whose hosts it may hold; none: of any rack', 'rack'),
    'hosts.rack',
    (id) => (id === 'none' ? '' : resourceName('racks', id)),
  ),
  image: field(
    textFlag('OCI reference by tag or digest, or https://HOST/PATH#sha256=HEX', 'image'),
    'image',
  ),
  size: field(
    { ...textFlag('So many of them; unset or all means all', 'count'), parse: wholeOr('all') },
    'size',
    (size) => (size === 'all' ? undefined : size),
  ),
  maxUnavailable: field(
    textFlag('Hosts out at once, as 2 or 25%; none means 1, 0 stops', 'amount'),
    'rollout.maxUnavailable',
    (amount) => amountOf('--max-unavailable', amount),
  ),
  perRack: field(
    { ...textFlag('The same within one rack, or none', 'count'), parse: wholeOr('none') },
    'rollout.maxUnavailablePerRack',
    (count) => (count === 'none' ? undefined : count),
  ),
  failureThreshold: field(
    textFlag(
      'Failed hosts that stop the rollout, as 2 or 5%; none means 5%, but at least 2',
      'amount',
    ),
    'rollout.failureThreshold',
    (amount) => amountOf('--failure-threshold', amount),
  ),
  soak: field(
    textFlag('How long a host has to be healthy, as 10m, or none', 'duration'),
    'rollout.soak',
    (soak) => durationOf('--soak', soak),
  ),
  window: field(
    texts('When hosts may be taken out: "0 2 * * 6 for 4h in Europe/Berlin"', 'window'),
    'rollout.windows',
    (windows) => unlessNone(windows).map(windowOf),
  ),
  rollback: field(
    {
      kind: 'boolean',
      optional: true,
      brief: 'Go back to the image before when too many hosts fail',
    },
    'rollout.rollback',
  ),
  gate: field(
    textFlag('"approval": a person is asked before each host in service; or none', 'gate'),
    'rollout.gate.approval',
    (approver) => approver === 'approval',
  ),
  gateWebhook: field(
    textFlag('URL that is asked before each host in service; or none', 'url'),
    'rollout.gate.webhookUrl',
    (url) => (url === 'none' ? '' : url),
  ),
  gateDeadline: field(
    textFlag('How long the gate is waited for, as 8h; none means 24h', 'duration'),
    'rollout.gate.deadline',
    (deadline) => durationOf('--gate-deadline', deadline),
  ),
} as const;

/** Flags of a pool's fields. */
export const poolFlags = {
  ...flagsOf(fields),
  label: texts(
    'Label of the hosts that it may hold, NAME=VALUE; NAME- drops one; none: whatever',
    'name=value',
  ),
  ownLabel: texts('Label of the pool itself, NAME=VALUE; NAME- removes it, none all', 'name=value'),
  ...deployFlags,
  pin: texts(
    'Keep a host to an image by digest, OCI or URL, HOST=IMAGE; none: no host',
    'host=image',
  ),
  unpin: texts('Id of a host that keeps to no image of its own any more', 'host'),
} as const;

/** Values of `poolFlags`. */
export interface PoolFlags extends ValuesOf<typeof fields>, DeployFlags {
  readonly label?: readonly string[];
  readonly ownLabel?: readonly string[];
  readonly pin?: readonly string[];
  readonly unpin?: readonly string[];
}

export interface WantedPool {
  readonly pool: Pool;
  /** The fields that the flags set, as paths of an update. */
  readonly paths: string[];
}

/** The pool that the flags and the files that they name speak of. Throws `UsageError`. */
export async function poolFrom(io: CommandIo, name: string, flags: PoolFlags): Promise<WantedPool> {
  const { deploy, paths } = await deployFrom(io, flags);
  const wanted = poolOf(name, flags);
  if (paths.length === 0 || wanted.pool.spec === undefined) return wanted;
  wanted.pool.spec.deploy = deploy;
  return { ...wanted, paths: [...wanted.paths, ...paths.map((path) => `spec.deploy.${path}`)] };
}

/** The same, but for how the image is deployed. */
export function poolOf(name: string, flags: PoolFlags): WantedPool {
  const given = givenBy(fields, withoutGate(flags));
  if (flags.gate === 'none' && given.paths.every((path) => !path.startsWith('spec.rollout.gate'))) {
    setField(given, 'rollout.gate', undefined);
  }
  const spec = create(PoolSpecSchema, given.spec as MessageInitShape<typeof PoolSpecSchema>);
  const labels = labelChange(flags.label, 'spec.hosts.labels');
  if (flags.label !== undefined) {
    spec.hosts ??= create(HostSelectorSchema);
    spec.hosts.labels = labels.set;
  }
  const own = parseMapChange('--own-label', 'labels', flags.ownLabel, parseOwnLabels);
  const pins = pinsOf(spec, flags);
  const paths = [...given.paths, ...labels.paths, ...own.paths, ...pins];
  return { pool: create(PoolSchema, { name, spec, labels: own.set }), paths };
}

/**
 * Without flags that have no effect: when no gate is asked any more, no part of the gate can be
 * set.
 */
function withoutGate(flags: PoolFlags): PoolFlags {
  const { gate, gateWebhook, ...others } = flags;
  if (gate !== undefined && gate !== 'approval' && gate !== 'none') {
    const right = 'it must be approval or none; a webhook is given by --gate-webhook URL';
    throw new UsageError(`--gate is "${gate}"; ${right}`);
  }
  // A webhook that is named in the same command is asked in place of the person.
  if (gate !== 'none' || (gateWebhook ?? 'none') !== 'none') return flags;
  if (flags.gateDeadline !== undefined) {
    throw new UsageError('--gate none leaves nothing that --gate-deadline is for');
  }
  return others;
}

function parseOwnLabels(texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(texts.map((text) => parsePair('--own-label', text)));
}

/** Host by host: the pins of others stay. Answers the paths. */
function pinsOf(spec: PoolSpec, { pin = [], unpin = [] }: PoolFlags): string[] {
  if (pin.join() === 'none') return ['spec.pins'];
  const pinned = pin.map((each) => {
    const [host, image] = parsePair('--pin', each, 'HOST=IMAGE, or none');
    return [resourceName('hosts', host), image] as const;
  });
  const freed = unpin.map((host) => resourceName('hosts', host));
  spec.pins = Object.fromEntries(pinned);
  const both = freed.find((host) => spec.pins[host] !== undefined);
  if (both !== undefined) throw new UsageError(`--pin and --unpin both name ${both}`);
  return [...Object.keys(spec.pins), ...freed].map((host) => `spec.pins.\`${host}\``);
}

function unlessNone(given: readonly string[]): readonly string[] {
  return given.join() === 'none' ? [] : given;
}

function wholeOr<W extends string>(word: W) {
  return (text: string): number | W => (text === word ? word : parseWhole(text));
}

function amountOf(flag: string, given: string) {
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
  return { amount };
}

/** Undefined: "none". */
function durationOf(flag: string, given: string) {
  if (given === 'none') return undefined;
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
  return { cron, timeZone, ...(duration === undefined ? {} : { duration }) };
}
