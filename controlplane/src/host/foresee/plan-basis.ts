/**
 * The basis of a plan, and its hash: the same plan of the same host has the same hash, on every
 * replica and at every time. Pure.
 *
 * Invariants:
 * P1 The basis contains nothing that changes by itself: no times, no sessions, no kernel names of
 *    disks, and not the order in which the machine listed its parts.
 * P2 The basis contains nothing that the run does not depend on: a plan is refused only for a
 *    reason.
 */
import { createHash } from 'node:crypto';
import { clone, create, type DescMessage, type MessageShape, toJson } from '@bufbuild/protobuf';
import {
  HostSpecSchema,
  type Inventory,
  InventorySchema,
  type Plan,
  type PlannedDevice,
  PlannedStepSchema,
  type PlanRunRequest,
  PlanSchema,
  type StorageDevice,
  store,
  Transport,
} from '@rackwright/messages';
import type { PassView } from '../pass/pass.ts';
import type { StepView } from '../pass/read-only.ts';
import { isPlannedToSkip } from '../run/step-parts.ts';
import { isLeftAlone } from './fate.ts';
import type { Foresight } from './foresee.ts';

/** A plan for the present state: its content and its basis. Names and times are unset. */
export interface DraftPlan {
  readonly plan: Plan;
  readonly basis: store.PlanBasis;
}

/** Makes a plan and its hash. */
export function draftHostPlan(
  pass: Pick<PassView, 'host' | 'status' | 'spec' | 'snapshot'>,
  request: PlanRunRequest | undefined,
  templateDigest: string,
  foresight: Foresight,
): DraftPlan {
  const { host, status, spec, snapshot } = pass;
  const { inventory } = snapshot.facts;
  const { rack, bmc, bootMacs, goal, cleaning, retired, deletion, rootDisk } = spec;
  const basis = create(store.PlanBasisSchema, {
    hostUid: host.uid,
    ...(request === undefined ? {} : { request }),
    ...(inventory === undefined ? {} : { inventory: stable(inventory) }),
    templateDigest,
    state: status.state,
    // The effects of its power policy and its labels show in steps and stages.
    spec: clone(
      HostSpecSchema,
      create(HostSpecSchema, {
        rack,
        bootMacs: [...bootMacs],
        goal,
        ...(bmc === undefined ? {} : { bmc }),
        ...(cleaning === undefined ? {} : { cleaning }),
        ...(retired === undefined ? {} : { retired }),
        ...(deletion === undefined ? {} : { deletion }),
        ...(rootDisk === undefined ? {} : { rootDisk }),
      }),
    ),
  });
  const { kind, steps, devices, stages, dataLoss, notes } = foresight;
  const plan = create(PlanSchema, {
    hostUid: host.uid,
    kind,
    steps: steps.map(plannedStep),
    devices: [...devices],
    dataLoss: [...dataLoss],
    notes: [...notes],
    stages: [...stages],
  });
  plan.hash = hashOf({ plan, basis });
  return { plan, basis };
}

function plannedStep(step: StepView) {
  const { name, title, destructive, rerunClass, condition, skippedBecause, handler } = step;
  const only = handler ? 'only when a step names it as its handler' : condition;
  return create(PlannedStepSchema, {
    step: name,
    title,
    arguments: step.arguments,
    destructive,
    rerunClass,
    condition: isPlannedToSkip(step) ? `skipped: ${skippedBecause}` : only,
    ...(step.timeout === undefined ? {} : { timeout: step.timeout }),
  });
}

/** Devices that come and go and do not belong to the host: no run touches them. */
const passing: ReadonlySet<Transport> = new Set([
  Transport.OPTICAL,
  Transport.KERNEL,
  Transport.VIRTUAL_MEDIA,
]);

/** The inventory without the values that differ between inspections (P1). */
export function stable(inventory: Inventory): Inventory {
  const kept = clone(InventorySchema, inventory);
  delete kept.collectedAt;
  kept.runnerSession = '';
  kept.bootId = '';
  kept.memoryBytes = installedMemory(kept.memoryBytes);
  kept.devices = kept.devices.filter(({ transport }) => !passing.has(transport));
  for (const device of kept.devices) forgetNames(device);
  const link = { name: '', linkUp: false, speedMbps: 0, neighbors: [], listenedSeconds: 0 };
  for (const card of kept.interfaces) Object.assign(card, link);
  kept.memoryModules = [];
  kept.firmware = [];
  kept.devices.sort(byText(({ serial, wwn, model }) => `${serial} ${wwn} ${model}`));
  kept.interfaces.sort(byText(({ mac }) => mac));
  kept.undrivenStorage.sort();
  kept.storageSigns.sort(byText(({ name, serial }) => `${name} ${serial}`));
  return kept;
}

/**
 * The kernel reports a few percent less memory than is installed, and a different amount at each
 * boot. Rounding up to an eighth of the next power of two gives a stable value.
 */
function installedMemory(bytes: bigint): bigint {
  let power = 8n;
  while (power < bytes) power *= 2n;
  const eighth = power / 8n;
  return ((bytes + eighth - 1n) / eighth) * eighth;
}

/** The content of a disk, and its users in the runner, do not identify the disk. */
function forgetNames(device: StorageDevice): void {
  device.device = '';
  device.holders = [];
  device.partitions = [];
  delete device.health;
  for (const region of device.regions) region.name = '';
}

function byText<T>(textOf: (each: T) => string) {
  return (a: T, b: T) => (textOf(a) < textOf(b) ? -1 : textOf(a) > textOf(b) ? 1 : 0);
}

/** SHA-256, lower-case hex, over the plan's content and basis. */
function hashOf({ plan, basis }: DraftPlan): string {
  const { kind, steps, devices, stages } = plan;
  const text = canonical({
    basis: jsonOf(store.PlanBasisSchema, basis),
    kind,
    steps: steps.map((step) => jsonOf(PlannedStepSchema, step)),
    devices: devices
      .filter((device) => !isLeftAlone(device))
      .map(hashedPart)
      .sort(byText(String)),
    stages,
  });
  return createHash('sha256').update(`plan\0${text}`).digest('hex');
}

/** Its fate by type, not by text. */
function hashedPart({ serial, wwn, deviceFate, method, verification }: PlannedDevice) {
  return [serial, wwn, deviceFate, method, verification];
}

function jsonOf<D extends DescMessage>(schema: D, message: MessageShape<D>): unknown {
  return toJson(schema, message);
}

/** JSON with the keys of every object sorted, because maps have no order. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(byText(([key]) => key)))
      : each,
  );
}
