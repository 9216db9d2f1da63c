/**
 * UpdateHost: merge by mask, check the whole, reserve new values, hand over to the host loop,
 * release values that are no longer named, and confirm the new ones.
 */
import { clone, create } from '@bufbuild/protobuf';
import {
  alreadyExists,
  type Host,
  type HostId,
  HostSchema,
  type HostSpec,
  HostSpecSchema,
  invalidArgument,
  notFound,
  type UpdateHostRequest,
} from '@rackwright/messages';
import { applyMask, maskPaths } from '../../call/field-mask.ts';
import { presentHost, readFacts, readHost } from '../../call/host-view.ts';
import { requireName } from '../../call/names.ts';
import { answerOf } from '../../call/outcome.ts';
import { type RpcDependencies, requester } from '../../call/ports.ts';
import { etagMismatch, revisionOfEtag } from '../../call/position.ts';
import { checkLabels, checkRequestId } from '../../call/texts.ts';
import { Violations } from '../../call/violations.ts';
import { hasApplied, untilWritten } from '../../records/index.ts';
import {
  confirm,
  fencesAround,
  type ReservedValue,
  releaseUnnamed,
  reserve,
  reservedValues,
} from '../index.ts';
import { checkHostSpec } from '../spec/host-spec.ts';
import { checkReferences, takenFailure } from './create-host.ts';
import { checkDestination, checkMayPoint } from './destination.ts';

const updatablePaths = [
  'labels',
  'spec',
  'spec.rack',
  'spec.bmc',
  'spec.bmc.address',
  'spec.bmc.port',
  'spec.bmc.credential',
  'spec.bmc.cipher_suite',
  'spec.bmc.protocol',
  'spec.bmc.certificate_sha256',
  'spec.bmc.accepted_uuid',
  'spec.bmc.wake_on_lan',
  'spec.bmc.webhook',
  'spec.bmc.webhook.on_path',
  'spec.bmc.webhook.off_path',
  'spec.bmc.webhook.state_path',
  'spec.bmc.webhook.method',
  'spec.bmc.webhook.on_body',
  'spec.bmc.webhook.off_body',
  'spec.bmc.webhook.expected_status',
  'spec.bmc.webhook.state_field',
  'spec.bmc.webhook.on_values',
  'spec.bmc.webhook.off_values',
  'spec.bmc.webhook.secret_header',
  'spec.bmc.webhook.plain_http',
  'spec.boot_macs',
  'spec.goal',
  'spec.power',
  'spec.cleaning',
  'spec.cleaning.level',
  'spec.cleaning.priority_overrides',
  'spec.cleaning.allow_diskless',
  'spec.cleaning.allow_unproven_identity',
  'spec.cleaning.verification',
  'spec.cleaning.power_cycle_check',
  'spec.cleaning.hidden_areas',
  'spec.cleaning.method',
  'spec.cleaning.boot_media',
  'spec.cleaning.moved_disks',
  'spec.cleaning.usb_disks',
  'spec.cleaning.raid_drives',
  'spec.cleaning.failing_disks',
  'spec.retired',
  'spec.root_disk',
  'spec.deletion',
  'spec.deletion.keep_power',
  'spec.deletion.keep_data',
  'spec.shutdown',
  'spec.shutdown.mode',
  'spec.shutdown.timeout_seconds',
] as const;

/** Handles one UpdateHost. */
export async function updateHost(deps: RpcDependencies, request: UpdateHostRequest): Promise<Host> {
  const { host } = request;
  if (host === undefined) {
    throw invalidArgument([{ field: 'host', description: 'is missing; give its name and fields' }]);
  }
  const hostId = requireName('hosts', host.name, 'host.name');
  const expected = revisionOfEtag(deps.store, host.etag);
  return untilWritten(host.name, () => updateOnce(deps, request, host, hostId, expected));
}

/**
 * Undefined when the host changed in the meantime: then it merges again, if the caller gave no
 * etag.
 */
async function updateOnce(
  deps: RpcDependencies,
  request: UpdateHostRequest,
  wanted: Host,
  hostId: HostId,
  expected: number | undefined,
): Promise<Host | undefined> {
  const before = await readHost(deps, hostId);
  if (before === undefined) throw notFound(wanted.name);
  const by = requester(deps, 'update', request.requestId);
  // Applied before: its addresses and its old etag are not checked again.
  if (hasApplied(before.record, by.requestId)) return before.host;
  if (expected !== undefined && expected !== before.revision) throw etagMismatch(wanted.name);
  const merged = await mergeChecked(deps, request, wanted, before.host);
  const { spec } = merged;
  if (spec === undefined) throw new Error('a checked host has a spec');
  if (request.validateOnly) return merged;
  const values = reservedValues(spec);
  const reserved = await reserve(deps, before.host, values);
  if (reserved.kind === 'taken') throw takenFailure(reserved);
  const labels = { ...merged.labels };
  const fences = await fencesOfNew(deps, before.host, values, spec);
  const added = newOf(before.host, values);
  if (!(await confirm(deps, before.host, added))) {
    await settleReservations(deps, hostId, before.host, values);
    throw alreadyExists(`${takenMeanwhile(wanted.name)}; nothing was changed. Try again.`);
  }
  const change = { kind: 'update', spec, labels, ...fences } as const;
  const outcome = await deps.hosts.request(hostId, change, by, before.revision);
  await settleReservations(deps, hostId, before.host, values);
  if (outcome.kind === 'refused' && outcome.code === 'aborted') return undefined;
  const { record, revision } = answerOf(outcome, wanted.name);
  await keepNew(deps, before.host, added);
  return presentHost(deps, record, revision, await readFacts(deps, hostId));
}

function newOf(before: Host, values: readonly ReservedValue[]): ReservedValue[] {
  const old = new Set((before.spec ? reservedValues(before.spec) : []).map(({ key }) => key));
  return values.filter(({ key }) => !old.has(key));
}

function takenMeanwhile(name: string): string {
  return `Another host took one of the new addresses of ${name} at the same moment`;
}

/** An address that the host already had was checked before. */
async function fencesOfNew(
  { store }: RpcDependencies,
  before: Host,
  values: readonly ReservedValue[],
  spec: HostSpec,
): Promise<{ readonly fences?: readonly string[] }> {
  if (newOf(before, values).length === 0) return {};
  return { fences: await fencesAround(store, spec) };
}

/** The updated host. Throws all violations together. */
async function mergeChecked(
  deps: RpcDependencies,
  request: UpdateHostRequest,
  wanted: Host,
  present: Host,
): Promise<Host> {
  const violations = new Violations();
  checkRequestId(request.requestId, violations);
  const paths = maskPaths(HostSchema, request.updateMask, wanted, updatablePaths, violations);
  const merged = clone(HostSchema, present);
  applyMask(HostSchema, merged, wanted, paths);
  merged.spec ??= create(HostSpecSchema);
  if (merged.spec.rack === '') merged.spec.rack = present.spec?.rack ?? '';
  if (merged.spec.rack !== present.spec?.rack) {
    const move = 'delete the host and create it in the other rack';
    violations.add('host.spec.rack', `is ${present.spec?.rack} and cannot be changed; ${move}`);
  }
  checkLabels('host.labels', merged.labels, violations);
  checkHostSpec('host.spec', merged.spec, violations);
  await checkReferences(deps, 'host.spec', merged.spec, violations);
  await checkDestination(deps, 'host.spec', present.spec, merged.spec, violations);
  violations.throwIfAny();
  await checkMayPoint(deps, 'host.spec', present.spec, merged.spec);
  return merged;
}

/**
 * Releases each old or requested value that the present record does not name: after an accepted
 * update the old values, after a refused one the new ones.
 */
async function settleReservations(
  deps: RpcDependencies,
  hostId: HostId,
  before: Host,
  wanted: readonly ReservedValue[],
): Promise<void> {
  const old = before.spec === undefined ? [] : reservedValues(before.spec);
  const named = async () => (await readHost(deps, hostId))?.record;
  await releaseUnnamed(deps, before, [...old, ...wanted], named);
}

/**
 * Runs after the record names the values; from here on no other host can take them. Since the
 * earlier confirmation another host may have taken them, or a refused concurrent update of this
 * host may have released them.
 */
async function keepNew(
  deps: RpcDependencies,
  before: Host,
  added: readonly ReservedValue[],
): Promise<void> {
  if (await confirm(deps, before, added)) return;
  const again = await reserve(deps, before, added);
  if (again.kind === 'taken') {
    const [first] = again.taken;
    throw alreadyExists(
      `${takenMeanwhile(before.name)}, which names it now, too: ${first?.value.value} belongs to ` +
        `${first?.by}. Nothing starts on ${before.name} until one of them is given another.`,
    );
  }
  await confirm(deps, before, added);
}
