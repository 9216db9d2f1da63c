/** rackwright fleet … */
import { toJson } from '@bufbuild/protobuf';
import {
  type Fleet,
  FleetSchema,
  type FleetSpec,
  type TemplatePolicy,
  VerificationPolicySchema,
} from '@rackwright/messages';
import { buildCommand, buildRouteMap } from '@stricli/core';
import { briefs } from '../../briefs.ts';
import { UsageError } from '../../failure.ts';
import {
  connectionFlags,
  outputFlag,
  parseMapChange,
  parsePriorities,
  removedKey,
  type SharedFlags,
} from '../../flags.ts';
import { askedText } from '../../output/registry.ts';
import { isForPrograms, printAs, printFields } from '../../output/show.ts';
import type { CliContext, World } from '../../world.ts';
import {
  type BrakeFlags,
  brakeFlags,
  budgetText,
  freezeFields,
  parseBudget,
  wipeBudgetFlag,
} from '../frame/limits.ts';
import { parseVerification, verificationFlag } from '../host/verification-spec.ts';
import { type PolicyFlags, parsePolicy, policyFlags } from '../template/policy.ts';
import { cleanStepRoutes } from './clean-step.ts';
import { type FleetClient, withFleet } from './client.ts';
import { registryRoutes } from './registry.ts';
import { fleetStatus } from './status.ts';

const shared = { ...connectionFlags, ...outputFlag };
const aliases = { o: 'output' } as const;

async function show(
  world: World,
  flags: SharedFlags,
  call: (fleet: FleetClient) => Promise<Fleet>,
): Promise<void> {
  const fleet = await withFleet(world, flags, call);
  if (isForPrograms(flags.output)) {
    printAs(world, flags.output, FleetSchema, fleet);
    return;
  }
  printFields(world, [
    ['name', fleet.name],
    ['wipe budget', budgetText(fleet.spec?.wipeBudget)],
    ...priorityFields('priority', fleet.spec?.priorityOverrides ?? {}),
    ...reportFields(fleet.spec),
    ...policyFields(fleet.spec?.templates),
    ...(fleet.spec?.internalAddresses ?? []).map((each): [string, string] => ['internal', each]),
    ...(fleet.spec?.registries ?? []).map((each): [string, string] => [
      `registry ${each.registry}`,
      askedText(each),
    ]),
    ...(fleet.spec?.ownCleanSteps ?? []).map(({ name, image }): [string, string] => [
      `clean step own.${name}`,
      image,
    ]),
    ...(fleet.spec?.pools ?? []).flatMap(({ pool, priorityOverrides }) =>
      priorityFields(`pool ${pool}`, priorityOverrides),
    ),
    ...freezeFields(world, fleet.status?.freeze),
  ]);
}

/** How disks are read back, and what certificates say beside what was seen. */
function reportFields(spec: FleetSpec | undefined): [string, string][] {
  const { verification, erasureReport } = spec ?? {};
  const asJson = verification && toJson(VerificationPolicySchema, verification);
  const said = Object.entries({
    verification: asJson === undefined ? '' : JSON.stringify(asJson),
    organisation: erasureReport?.organisation ?? '',
    customer: erasureReport?.customer ?? '',
    technician: erasureReport?.technician ?? '',
  });
  return said.filter(([, value]) => value !== '');
}

function priorityFields(
  title: string,
  byStep: Readonly<Record<string, number>>,
): [string, string][] {
  return Object.entries(byStep).map(([step, priority]) => [title, `${step}=${priority}`]);
}

const getFleet = buildCommand({
  docs: { brief: 'Show what holds for every rack' },
  parameters: { flags: shared, aliases },
  func(this: CliContext, flags: SharedFlags) {
    return show(this.world, flags, (fleet) => fleet.getFleet({}));
  },
});

/** What templates may reach; nothing where nothing was let in. */
function policyFields(policy: TemplatePolicy | undefined): [string, string][] {
  const each = (title: string, texts: readonly string[] = []): [string, string][] =>
    texts.map((text) => [title, text]);
  const credentials = Object.entries(policy?.registryCredentials ?? {});
  return [
    ...each('images from', policy?.imageRepositories),
    ...each('plain HTTP to', policy?.plainHttpRegistries),
    ...each('webhooks to', policy?.webhookUrls),
    ...each(
      'credential for',
      credentials.map(([registry, name]) => `${registry}=${name.replace(/^credentials\//, '')}`),
    ),
    ...each(
      'token service of',
      Object.entries(policy?.registryTokenServices ?? {}).map((pair) => pair.join('=')),
    ),
    ...each(
      'secrets of',
      policy?.credentials.map((name) => name.replace(/^credentials\//, '')),
    ),
  ];
}

const named = { kind: 'parsed', parse: String, optional: true, placeholder: 'name' } as const;

interface UpdateFlags extends SharedFlags, PolicyFlags {
  readonly wipeBudget?: string;
  readonly priority?: readonly string[];
  readonly poolPriority?: readonly string[];
  readonly verification?: readonly string[];
  readonly organisation?: string;
  readonly customer?: string;
  readonly technician?: string;
}

const updateFleet = buildCommand({
  docs: {
    brief: 'Change what holds for every rack; what is not named stays',
    fullDescription:
      'A host’s own priorities go before those of its label "pool", and these before ' +
      'the fleet’s. A priority that is not named stays; STEP- or POOL:STEP- undoes one, and none ' +
      'alone all. ' +
      'Commands and webhooks of templates reach only what is let in here: each of these flags ' +
      'adds to what is there, its --no- form takes one back, and "none" alone takes all back.',
  },
  parameters: {
    flags: {
      ...shared,
      ...wipeBudgetFlag,
      priority: {
        kind: 'parsed',
        parse: String,
        variadic: true,
        optional: true,
        brief: 'INTERFACE.STEP=NUMBER for every host, 0 disables; INTERFACE.STEP- undoes it',
        placeholder: 'step=number',
      },
      poolPriority: {
        kind: 'parsed',
        parse: String,
        variadic: true,
        optional: true,
        brief: 'POOL:INTERFACE.STEP=NUMBER for the hosts of a pool; may be repeated',
        placeholder: 'pool:step=number',
      },
      ...verificationFlag,
      organisation: { ...named, brief: 'Who erases, as certificates say it; "" leaves it out' },
      customer: { ...named, brief: 'For whom, as certificates say it; "" leaves it out' },
      technician: { ...named, brief: 'Which technician, as certificates say it; "" leaves it out' },
      ...policyFlags,
    },
    aliases,
  },
  async func(this: CliContext, flags: UpdateFlags) {
    const { wipeBudget, priority, poolPriority } = flags;
    const paths: string[] = [];
    if (wipeBudget !== undefined) paths.push('spec.wipe_budget');
    const priorities = parseMapChange('--priority', 'spec.priority_overrides', priority, (texts) =>
      parsePriorities('--priority', texts),
    );
    paths.push(...priorities.paths);
    if (poolPriority !== undefined) paths.push('spec.pools');
    const report = reportOf(flags);
    paths.push(...Object.keys(report).map((key) => `spec.erasure_report.${key}`));
    if (flags.verification !== undefined) paths.push('spec.verification');
    const policy = parsePolicy(flags);
    const changePools = poolChange(poolPriority ?? []);
    paths.push(...policy.paths);
    if (paths.length === 0) {
      const flags =
        '--wipe-budget, --priority, --pool-priority, --verification, --organisation, --customer, ' +
        '--technician, --internal-address, or what templates may reach';
      throw new UsageError(`nothing to change: give ${flags}`);
    }
    const budget = wipeBudget === undefined ? undefined : parseBudget(wipeBudget);
    const verification = parseVerification(flags.verification ?? ['none']);
    const spec = {
      priorityOverrides: priorities.set,
      ...(budget === undefined ? {} : { wipeBudget: budget }),
      ...(verification === undefined ? {} : { verification }),
      erasureReport: report,
    };
    const updateMask = { paths };
    await show(this.world, flags, async (fleet) => {
      if (policy.paths.length === 0 && poolPriority === undefined) {
        return fleet.updateFleet({ fleet: { spec }, updateMask });
      }
      const { etag, spec: now } = await fleet.getFleet({});
      const templates = policy.over(now?.templates);
      const pools = changePools(now?.pools ?? []);
      // With its etag: what somebody else changes meanwhile is not taken back.
      const internalAddresses = policy.internal(now?.internalAddresses);
      const next = { ...spec, templates, pools, internalAddresses };
      return fleet.updateFleet({ fleet: { etag, spec: next }, updateMask });
    });
  },
});

function reportOf({ organisation, customer, technician }: UpdateFlags) {
  const given = Object.entries({ organisation, customer, technician });
  return Object.fromEntries(given.filter(([, value]) => value !== undefined));
}

/** What `--pool-priority` makes of the priorities of pools. Throws `UsageError`. */
function poolChange(texts: readonly string[]): (now: readonly PoolSteps[]) => PoolSteps[] {
  if (texts.join() === 'none') return () => [];
  const byPool = new Map<string, string[]>();
  for (const text of texts) {
    const at = text.indexOf(':');
    if (at < 1) {
      const right = 'POOL:INTERFACE.STEP=NUMBER, or POOL:INTERFACE.STEP-';
      throw new UsageError(`--pool-priority is "${text}"; it must be ${right}`);
    }
    const pool = text.slice(0, at);
    byPool.set(pool, [...(byPool.get(pool) ?? []), text.slice(at + 1)]);
  }
  const changes = [...byPool].map(([pool, steps]) => {
    const said = steps.filter((text) => removedKey(text) === undefined);
    const removed = steps.flatMap((text) => removedKey(text) ?? []);
    return { pool, set: parsePriorities('--pool-priority', said), removed };
  });
  return (now) => {
    const next = new Map(now.map(({ pool, priorityOverrides }) => [pool, priorityOverrides]));
    for (const { pool, set, removed } of changes) {
      const kept = Object.entries(next.get(pool) ?? {}).filter(([step]) => !removed.includes(step));
      next.set(pool, { ...Object.fromEntries(kept), ...set });
    }
    return [...next]
      .filter(([, priorityOverrides]) => Object.keys(priorityOverrides).length > 0)
      .map(([pool, priorityOverrides]) => ({ pool, priorityOverrides }));
  };
}

interface PoolSteps {
  readonly pool: string;
  readonly priorityOverrides: Record<string, number>;
}

const freezeFleet = buildCommand({
  docs: { brief: 'Let nothing destructive begin anywhere; what is running finishes' },
  parameters: { flags: { ...shared, ...brakeFlags }, aliases },
  func(this: CliContext, flags: SharedFlags & BrakeFlags) {
    const { reason, requestId } = flags;
    return show(this.world, flags, (fleet) => fleet.freezeFleet({ reason, requestId }));
  },
});

const thawFleet = buildCommand({
  docs: { brief: 'End the freeze of the fleet' },
  parameters: { flags: { ...shared, ...brakeFlags }, aliases },
  func(this: CliContext, flags: SharedFlags & BrakeFlags) {
    const { reason, requestId } = flags;
    return show(this.world, flags, (fleet) => fleet.thawFleet({ reason, requestId }));
  },
});

/** All commands on the fleet. */
export const fleetRoutes = buildRouteMap({
  routes: {
    get: getFleet,
    status: fleetStatus,
    update: updateFleet,
    registry: registryRoutes,
    'clean-step': cleanStepRoutes,
    freeze: freezeFleet,
    thaw: thawFleet,
  },
  docs: { brief: briefs.fleet },
});
