/** Why a plan is no longer valid, in words: each line names one change. Pure. */
import { type DescMessage, equals, type MessageShape } from '@bufbuild/protobuf';
import { sizeText } from '@rackwright/disk-image/size';
import { storageSignsOf } from '@rackwright/erasure';
import {
  BmcEndpointSchema,
  CleaningPolicySchema,
  CpuSchema,
  DeletionPolicySchema,
  type HostSpec,
  type Inventory,
  type Plan,
  type PlannedDevice,
  type PlannedStep,
  RootDiskHintsSchema,
  type StorageDevice,
  StorageDeviceSchema,
  SystemIdentitySchema,
  shownArguments,
  type store,
} from '@rackwright/messages';
import { stateName } from '../pass/display.ts';
import { isOfTemplate } from '../pass/step-names.ts';
import { deviceText } from './devices.ts';
import type { DraftPlan } from './plan-basis.ts';

/** The most differences that are named; the rest is counted. */
const linesMax = 20;

/** The differences between a stored plan and the plan for the present state. */
export function differences(kept: store.PlanRecord, now: DraftPlan): string[] {
  const lines = [
    ...basisDifferences(kept.basis, now.basis),
    ...planDifferences(kept.plan, now.plan),
  ];
  if (lines.length === 0) lines.push('what it follows from is not what it was');
  if (lines.length <= linesMax) return lines;
  return [...lines.slice(0, linesMax), `and ${lines.length - linesMax} more`];
}

function basisDifferences(
  before: store.PlanBasis | undefined,
  now: store.PlanBasis,
): readonly string[] {
  if (before === undefined) return [];
  if (before.hostUid !== now.hostUid) return ['the host has been made anew under its name'];
  const states = `its state was ${stateName(before.state)} and is ${stateName(now.state)}`;
  return [
    ...(before.state === now.state ? [] : [states]),
    ...(before.templateDigest === now.templateDigest ? [] : ['the template has been changed']),
    ...inventoryDifferences(before.inventory, now.inventory),
    ...specDifferences(before.spec, now.spec),
  ];
}

function inventoryDifferences(before: Inventory | undefined, now: Inventory | undefined): string[] {
  if (before === undefined && now === undefined) return [];
  if (before === undefined) return ['it has been inspected since: its disks are known now'];
  if (now === undefined) return ['what was known of its disks is known no more'];
  return [
    ...machineDifferences(before, now),
    ...diskDifferences(before.devices, now.devices),
    ...setDifferences('network card', macs(before), macs(now)),
    ...setDifferences('sign of storage', signNames(before), signNames(now)),
  ];
}

function machineDifferences(before: Inventory, now: Inventory): string[] {
  const [was, is] = [before.system, now.system].map((system) =>
    system === undefined ? 'unknown' : `${system.product || 'machine'} ${system.serial}`.trim(),
  );
  const memory = [before, now].map(({ memoryBytes }) => sizeText(memoryBytes));
  return [
    ...(isSame(SystemIdentitySchema, before.system, now.system)
      ? []
      : [`the machine says it is another: ${was}, now ${is}`]),
    ...(isSameList(CpuSchema, before.cpus, now.cpus) ? [] : ['its processors have changed']),
    ...(before.memoryBytes === now.memoryBytes
      ? []
      : [`its memory was ${memory[0]} and is ${memory[1]}`]),
  ];
}

function diskDifferences(
  before: readonly StorageDevice[],
  now: readonly StorageDevice[],
): string[] {
  const identity = ({ serial, wwn }: StorageDevice) => serial || wwn;
  const was = new Map(before.map((disk) => [identity(disk), disk]));
  const is = new Map(now.map((disk) => [identity(disk), disk]));
  return [
    ...before
      .filter((disk) => !is.has(identity(disk)))
      .map((disk) => `${deviceText(disk)} is gone`),
    ...now.filter((disk) => !was.has(identity(disk))).map((disk) => `${deviceText(disk)} is new`),
    ...now.flatMap((disk) => {
      const earlier = was.get(identity(disk));
      return earlier === undefined ? [] : changeOf(earlier, disk);
    }),
  ];
}

function changeOf(before: StorageDevice, now: StorageDevice): string[] {
  if (equals(StorageDeviceSchema, before, now)) return [];
  const disk = deviceText(now);
  if (before.sizeBytes !== now.sizeBytes) return [`${disk} had ${sizeText(before.sizeBytes)}`];
  if (before.firmware !== now.firmware) {
    return [`${disk} had firmware ${before.firmware || 'unknown'}, now ${now.firmware}`];
  }
  return [`${disk} says of itself something else than before`];
}

function signNames(inventory: Inventory): string[] {
  return storageSignsOf(inventory).map(({ name }) => name);
}

function macs({ interfaces }: Inventory): string[] {
  return interfaces.map(({ mac }) => mac);
}

function setDifferences(name: string, before: readonly string[], now: readonly string[]): string[] {
  return [
    ...before.filter((each) => !now.includes(each)).map((each) => `${name} ${each} is gone`),
    ...now.filter((each) => !before.includes(each)).map((each) => `${name} ${each} is new`),
  ];
}

function specDifferences(before: HostSpec | undefined, now: HostSpec | undefined): string[] {
  if (before === undefined || now === undefined) return [];
  return [
    ...(isSame(BmcEndpointSchema, before.bmc, now.bmc) ? [] : ['its BMC is another in its spec']),
    ...setDifferences('boot MAC', before.bootMacs, now.bootMacs),
    ...(before.goal === now.goal && before.retired === now.retired ? [] : ['its goal has changed']),
    ...(isSame(CleaningPolicySchema, before.cleaning, now.cleaning)
      ? []
      : ['its cleaning policy has changed']),
    ...(isSame(DeletionPolicySchema, before.deletion, now.deletion)
      ? []
      : ['its deletion policy has changed']),
    ...(isSame(RootDiskHintsSchema, before.rootDisk, now.rootDisk)
      ? []
      : ['the disk that its image comes onto has changed in its spec']),
  ];
}

function planDifferences(before: Plan | undefined, now: Plan): string[] {
  if (before === undefined) return [];
  const whole = ({ fate, verification }: PlannedDevice) =>
    verification === '' ? fate : `${fate}, read back: ${verification}`;
  const fates = new Map(before.devices.map((device) => [deviceText(device), whole(device)]));
  return [
    ...stepDifferences(before.steps, now.steps),
    ...now.devices.flatMap((device) => {
      const was = fates.get(deviceText(device));
      if (was === undefined || was === whole(device)) return [];
      return [`${deviceText(device)} was “${was}” and is “${whole(device)}”`];
    }),
    ...(before.stages.join('\n') === now.stages.join('\n')
      ? []
      : [`the way to the removal is now: ${now.stages.join('; ')}`]),
  ];
}

function stepDifferences(before: readonly PlannedStep[], now: readonly PlannedStep[]): string[] {
  const [was, is] = [before.map(wholeStep), now.map(wholeStep)];
  const gone = before.filter((_, index) => !is.includes(was[index] ?? ''));
  const come = now.filter((_, index) => !was.includes(is[index] ?? ''));
  const lines = [
    ...hiddenDifferences(gone, come),
    ...setDifferences('step', texts(gone), texts(come)),
  ];
  if (lines.length > 0 || was.join('\n') === is.join('\n')) return lines;
  return [
    `its steps are in another order, or as often as before no more: ${texts(now).join(', ')}`,
  ];
}

/** Steps without a visible difference: names the arguments whose values differ. */
function hiddenDifferences(
  gone: readonly PlannedStep[],
  come: readonly PlannedStep[],
): readonly string[] {
  return come.flatMap((step) => {
    const earlier = gone.find((each) => stepText(each) === stepText(step));
    if (earlier === undefined) return [];
    const names = Object.keys(step.arguments)
      .filter((name) => step.arguments[name] !== earlier.arguments[name])
      .sort();
    return [`step ${step.title || step.step} has another value of ${names.join(', ')}`];
  });
}

function texts(steps: readonly PlannedStep[]): string[] {
  return steps.map(stepText);
}

/** The complete content behind `stepText`: only for comparison, never shown. */
function wholeStep({ step, title, arguments: given, condition }: PlannedStep): string {
  const pairs = Object.entries(given).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([step, title, pairs, condition]);
}

/** "deploy.erase_devices", "check (run.command, image=…)" */
function stepText({ step, title, arguments: given, condition }: PlannedStep): string {
  const pairs = shownArguments(given, valueMax).map(([name, value]) => `${name}=${value}`);
  const parts = [
    ...(isOfTemplate({ title }) ? [step] : []),
    ...pairs,
    ...(condition ? [condition] : []),
  ];
  const name = title || step;
  return parts.length === 0 ? name : `${name} (${parts.join(', ')})`;
}

/** The most characters of an argument in a line. */
const valueMax = 60;

function isSame<D extends DescMessage>(
  schema: D,
  before: MessageShape<D> | undefined,
  now: MessageShape<D> | undefined,
): boolean {
  if (before === undefined || now === undefined) return before === now;
  return equals(schema, before, now);
}

function isSameList<D extends DescMessage>(
  schema: D,
  before: readonly MessageShape<D>[],
  now: readonly MessageShape<D>[],
): boolean {
  if (before.length !== now.length) return false;
  return before.every((each, index) => isSame(schema, each, now[index]));
}
