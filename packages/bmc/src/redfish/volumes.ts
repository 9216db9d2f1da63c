/**
 * RAID volumes of a storage controller (DSP0268: Storage, Volume, VolumeCollection).
 *
 * 1. Everything that can be checked is checked before anything is deleted: a deletion loses the
 *    volume's content.
 * 2. Each change is ordered once: after the order the driver only reads, also when the answer was
 *    lost. No failure after the first order is transient, so the order is never repeated
 *    automatically.
 * 3. A volume is identified by its RAID type and its drives, never by its number or its name, which
 *    services reuse for the next one. Only what is read back counts.
 * 4. A drive that is passed through is no RAID and is left alone.
 * 5. The caller permits each order right before it is sent, also when it is sent again. It may let
 *    an order after the first one wait.
 */
import { pause } from '@rackwright/platform';
import {
  type BmcAssertion,
  type BmcResult,
  failed,
  type OnUpdateProgress,
  ok,
  transient,
  type VolumeOrder,
  type WantedVolume,
} from '../driver.ts';
import { mayHaveHappened, readUntil } from '../read-back.ts';
import { variantsOf, volumeTypes } from '../vendors.ts';
import { FirstFailure, isRefused, readBy } from './acting.ts';
import type { AcceptedOrder, Conversation, Get, Resource } from './conversation.ts';
import { type JsonObject, objectAt, objectsAt, pathOf, pathsAt, textAt, textsAt } from './json.ts';
import { listedIn } from './pages.ts';
import { isThere } from './part-reader.ts';
import { type TaskCalls, taskIn, watchTask } from './tasks.ts';

export interface VolumeTimings {
  /** All changes together may take so long. */
  readonly windowMs: number;
  readonly pollMs: number;
  /**
   * A change shows within this time after the end of its task, or after the answer where there is
   * no task.
   */
  readonly shownWithinMs: number;
}

export const defaultVolumeTimings: VolumeTimings = {
  windowMs: 3_600_000,
  pollMs: 5_000,
  shownWithinMs: 180_000,
};

export interface VolumeCalls extends TaskCalls {
  /**
   * (5) One order, in a conversation of its own: a restart of the BMC ends every session. `send` is
   * called once the order is permitted, or never. `done`: the changes that were made before.
   */
  ordering<T>(
    done: readonly string[],
    send: (talk: Conversation) => Promise<BmcResult<T>>,
  ): Promise<BmcResult<T>>;
  readonly volumes: VolumeTimings;
}

const storagesMax = 16;
const drivesMax = 128;
const volumesMax = 128;
const namesShownMax = 16;
const textCharactersMax = 512;

/** A wanted volume, its drives by their paths. */
interface Target extends WantedVolume {
  readonly paths: readonly string[];
}

interface Volume {
  readonly path: string;
  readonly raidType: string;
  readonly paths: readonly string[];
}

/** The paths of a controller's volumes, and of their changes. */
interface Controller {
  readonly listPath: string;
  /** Sent along with the order that creates a volume. */
  readonly applyTime: JsonObject;
}

/** Makes the controller hold the wanted volumes and no others. Not `changed`: it holds them. */
export async function applyVolumes(
  system: Resource,
  order: VolumeOrder,
  tell: OnUpdateProgress,
  calls: VolumeCalls,
): Promise<BmcResult<BmcAssertion>> {
  const get = readBy(calls);
  const storage = await findStorage(system, order.controller, get);
  if (storage.kind !== 'ok') return storage;
  const targets = await targetsOf(storage.value, order.volumes, get);
  if (targets.kind !== 'ok') return targets;
  const controller = await controllerOf(storage.value, order.volumes, get);
  if (controller.kind !== 'ok') return controller;
  const { listPath } = controller.value;
  const now = await readVolumes(listPath, get);
  if (now.kind !== 'ok') return now;
  const { surplus, missing } = difference(now.value, targets.value);
  if (surplus.length + missing.length === 0) return ok({ changed: false, notes: [] });
  const changes: readonly Change[] = [...surplus.map(deletionOf), ...missing.map(creationOf)];
  const endMs = calls.clock.suspendAwareMs() + calls.volumes.windowMs;
  if (order.checkOnly) return judge(await seen(listPath, targets.value, calls), targets.value);
  for (const [at, change] of changes.entries()) {
    const share = (percent: number) => Math.round((at * 100 + percent) / changes.length);
    const tellStep: OnUpdateProgress = (percent, state) =>
      tell(share(percent), `${change.text}: ${state}`);
    const before = changes.slice(0, at).map(({ text }) => text);
    const watch = { endMs, tell: tellStep, before };
    const end = await makeChange(change, controller.value, watch, calls);
    if (end !== undefined) return end;
  }
  return judge(await seen(listPath, targets.value, calls), targets.value);
}

async function findStorage(system: Resource, id: string, get: Get): Promise<BmcResult<Resource>> {
  const path = pathOf(objectAt(system.body, 'Storage'));
  const list = path === undefined ? noVolumes : await listedIn(path, get, storagesMax);
  if ('kind' in list) return list;
  const unread = new FirstFailure();
  const known: string[] = [];
  for (const member of list.paths) {
    const storage = await get(member);
    if (storage.kind === 'transient') return storage;
    unread.note(storage);
    if (storage.kind !== 'ok') continue;
    const name = textAt(storage.value.body, 'Id') ?? '';
    if (name === id) return storage;
    known.push(name);
  }
  const failure = unread.failure ?? list.notRead;
  if (failure !== undefined) return failure;
  return refuse(`the BMC lists no storage controller ${id}`, `it lists ${shown(known)}`);
}

const noVolumes = failed('unsupported', 'the BMC lets nobody change RAID volumes');

function refuse(message: string, text = ''): BmcResult<never> {
  return failed('volumesRefused', bounded(message), bounded(text));
}

/** The wanted volumes with the paths of their drives, all of which are there. */
async function targetsOf(
  storage: Resource,
  wanted: readonly WantedVolume[],
  get: Get,
): Promise<BmcResult<readonly Target[]>> {
  const byId = new Map<string, string>();
  const unread = new FirstFailure();
  for (const path of pathsAt(storage.body, 'Drives').slice(0, drivesMax)) {
    const drive = await get(path);
    if (drive.kind === 'transient') return drive;
    unread.note(drive);
    if (drive.kind !== 'ok') continue;
    const id = textAt(drive.value.body, 'Id') ?? '';
    if (!isThere(drive.value.body)) continue;
    if (byId.has(id)) return failed('ambiguous', `the controller has two drives ${id}`);
    byId.set(id, path);
  }
  const unknown = wanted.flatMap(({ drives }) => drives.filter((id) => !byId.has(id)));
  if (unknown.length > 0) {
    if (unread.failure !== undefined) return unread.failure;
    const text = `it lists ${shown([...byId.keys()])}`;
    return refuse(`the controller has no drive ${shown(unknown)}`, text);
  }
  return ok(wanted.map((one) => ({ ...one, paths: one.drives.map((id) => byId.get(id) ?? '') })));
}

async function controllerOf(
  storage: Resource,
  wanted: readonly WantedVolume[],
  get: Get,
): Promise<BmcResult<Controller>> {
  const listPath = pathOf(objectAt(storage.body, 'Volumes'));
  const list = listPath === undefined ? noVolumes : await get(listPath);
  if (list.kind !== 'ok') return list;
  const { body, path } = list.value;
  const types = await raidTypesOf(storage.body, body, get);
  if (types.kind !== 'ok') return types;
  const unknown = wanted.find(({ raidType }) => types.value?.includes(raidType) === false);
  if (unknown !== undefined) {
    const text = `it makes ${shown(types.value ?? [])}`;
    return refuse(`the controller makes no ${unknown.raidType}`, text);
  }
  const support = objectAt(body, '@Redfish.OperationApplyTimeSupport');
  const times = textsAt(support, 'SupportedValues');
  if (times === undefined) return ok({ listPath: path, applyTime: {} });
  if (times.includes('Immediate')) {
    return ok({ listPath: path, applyTime: { '@Redfish.OperationApplyTime': 'Immediate' } });
  }
  const message = 'the controller changes volumes at a later boot only, which no step waits for';
  return failed('unsupported', message, bounded(`it offers ${shown(times)}`));
}

/** RAID types that the controller makes; undefined: unreported. */
async function raidTypesOf(
  storage: JsonObject,
  list: JsonObject,
  get: Get,
): Promise<BmcResult<readonly string[] | undefined>> {
  const offered = textsAt(list, 'RAIDType@Redfish.AllowableValues');
  if (offered !== undefined) return ok(offered);
  const [inline] = objectsAt(storage, 'StorageControllers');
  const types = inline === undefined ? undefined : textsAt(inline, 'SupportedRAIDTypes');
  if (types !== undefined) return ok(types);
  const path = pathOf(objectAt(storage, 'Controllers'));
  const members = path === undefined ? undefined : await get(path);
  if (members?.kind !== 'ok') return members?.kind === 'transient' ? members : ok(undefined);
  const [first] = pathsAt(members.value.body, 'Members');
  const controller = first === undefined ? undefined : await get(first);
  if (controller?.kind === 'transient') return controller;
  return ok(
    controller?.kind === 'ok' ? textsAt(controller.value.body, 'SupportedRAIDTypes') : undefined,
  );
}

/** All RAID volumes; a failure if one of them cannot be read. */
async function readVolumes(listPath: string, get: Get): Promise<BmcResult<readonly Volume[]>> {
  const listed = await listedIn(listPath, get, volumesMax);
  if ('kind' in listed) return listed;
  if (listed.notRead !== undefined) return listed.notRead;
  if (listed.hasMore) return refuse(`the controller lists more than ${volumesMax} volumes`);
  const volumes: Volume[] = [];
  for (const path of listed.paths) {
    const volume = await get(path);
    if (volume.kind !== 'ok') return volume;
    const { body } = volume.value;
    const raidType = textAt(body, 'RAIDType') ?? byVolumeType(body);
    if (raidType === 'None') continue;
    volumes.push({ path, raidType, paths: pathsAt(objectAt(body, 'Links'), 'Drives') });
  }
  return ok(volumes);
}

/** Before `RAIDType` there was only this (DSP0268, Volume 1.3.1). */
function byVolumeType(body: JsonObject): string {
  const type = textAt(body, 'VolumeType') ?? '';
  return volumeTypes.find(({ way }) => way === type)?.raidType ?? 'unknown';
}

/** The volumes to delete, and those to create. */
function difference(volumes: readonly Volume[], targets: readonly Target[]) {
  const isAlone = (one: Volume): boolean =>
    volumes.every((other) => other === one || !other.paths.some((at) => one.paths.includes(at)));
  const isWanted = (one: Volume): boolean =>
    isAlone(one) && targets.some((target) => isSame(one, target));
  const kept = volumes.filter(isWanted);
  return {
    surplus: volumes.filter((one) => !kept.includes(one)),
    missing: targets.filter((target) => !kept.some((one) => isSame(one, target))),
  };
}

function isSame(one: Volume, target: Target): boolean {
  const drives = new Set(one.paths);
  const isAll = drives.size === target.paths.length && target.paths.every((at) => drives.has(at));
  return isAll && one.raidType === target.raidType;
}

/** One order to the controller. */
interface Change {
  /** For people: "delete RAID1 of 2 drives". */
  readonly text: string;
  /** The ways to order it, until one is not refused. */
  orders(controller: Controller): readonly Order[];
  /** Whether it shows. */
  holds(volumes: readonly Volume[]): boolean;
}

type Order = (
  talk: Conversation,
  signal: AbortSignal | undefined,
) => Promise<BmcResult<AcceptedOrder>>;

function deletionOf(volume: Volume): Change {
  const { path, raidType, paths } = volume;
  return {
    text: `delete ${raidType} of ${paths.length} drives`,
    orders: () => [(talk, signal) => talk.remove(path, signal)],
    holds: (volumes) => volumes.every((one) => one.path !== path),
  };
}

function creationOf(target: Target): Change {
  const { raidType, drives, paths } = target;
  const plain = { RAIDType: raidType, Links: { Drives: paths.map((at) => ({ '@odata.id': at })) } };
  // A name that no other volume of the layout has, and short enough for everybody.
  const first = paths[0] ?? '';
  const mark = [...first].reduce((sum, one) => (sum * 31 + one.charCodeAt(0)) % 1_000_000, 7);
  const bodies = { named: { ...plain, Name: `rw-${mark}` }, nameless: plain };
  return {
    text: `create ${raidType} of ${shown(drives)}`,
    orders: ({ listPath, applyTime }) =>
      variantsOf('createVolume').map((way) => (talk, signal) => {
        return talk.order(listPath, { ...bodies[way], ...applyTime }, signal);
      }),
    holds: (volumes) => volumes.some((one) => isSame(one, target)),
  };
}

interface Watch {
  readonly endMs: number;
  readonly tell: OnUpdateProgress;
  /** The changes that were made before this one, in words. */
  readonly before: readonly string[];
}

/** Orders a change and waits until it shows; answers why it does not, or undefined. */
async function makeChange(
  change: Change,
  controller: Controller,
  watch: Watch,
  calls: VolumeCalls,
): Promise<BmcResult<never> | undefined> {
  const { endMs, tell } = watch;
  const { clock, volumes, signal } = calls;
  const ordered = await orderChange(change, controller, watch, calls);
  if (ordered.kind !== 'ok') return ordered;
  const { task, isOpen } = ordered.value;
  const { pollMs } = volumes;
  const of = { name: `to ${change.text}`, failsAs: 'volumesRefused', endMs, pollMs } as const;
  const over = task === undefined ? undefined : await watchTask(task, of, tell, calls);
  if (typeof over === 'object') return over;
  const shownMs = clock.suspendAwareMs() + volumes.shownWithinMs;
  const untilMs = isOpen || over === 'open' ? endMs : Math.min(endMs, shownMs);
  const timings = { windowMs: Math.max(untilMs - clock.suspendAwareMs(), 0), pollMs };
  const read = () => readVolumes(controller.listPath, calls.fresh);
  const after = await readUntil(clock, timings, read, change.holds, signal);
  if (signal?.aborted === true) return transient('cancelled', 'the volumes are not waited for');
  if (after.kind === 'transient') {
    // (2)
    const message = `the BMC does not tell whether it did ${change.text}`;
    return failed('stillPending', bounded(message), after.message);
  }
  if (after.kind !== 'ok') return after;
  if (change.holds(after.value)) return undefined;
  const message = `the BMC accepted to ${change.text}, and did not`;
  return failed('notApplied', bounded(message), textOf(after.value));
}

interface OrderOutcome {
  /** The path of the task that reports the outcome. */
  readonly task: string | undefined;
  /** Nobody knows whether it was taken: the answer was lost, or was of trouble. */
  readonly isOpen: boolean;
}

async function orderChange(
  change: Change,
  controller: Controller,
  watch: Watch,
  calls: VolumeCalls,
): Promise<BmcResult<OrderOutcome>> {
  const isFirst = watch.before.length === 0;
  const lost = isFirst ? '' : '; what was changed before it stays so';
  let refused = '';
  for (const order of change.orders(controller)) {
    const { taken, isSent } = await sendOrder(order, watch, calls);
    if (taken.kind === 'ok') return ok({ task: taskIn(taken.value), isOpen: false });
    if (isSent && isRefused(taken)) {
      // The first refusal says most: it is of the preferred request.
      if (refused === '') refused = taken.backendText;
    } else if (isSent && mayHaveHappened(taken)) {
      return ok({ task: undefined, isOpen: true });
    } else if (taken.kind === 'transient' && !isFirst && calls.signal?.aborted !== true) {
      const message = `"${change.text}" was not begun: ${taken.message}${lost}`;
      return failed('stillPending', bounded(message), taken.backendText);
    } else {
      return { ...taken, message: bounded(`${taken.message}${lost}`) };
    }
  }
  return refuse(`the BMC refuses to ${change.text}${lost}`, refused);
}

interface SentOrder {
  readonly taken: BmcResult<AcceptedOrder>;
  /** False: the BMC failed before it got the order. */
  readonly isSent: boolean;
}

/** The first change is given up when the BMC has not begun it; a later one waits for the BMC. */
async function sendOrder(
  order: Order,
  { endMs, before, tell }: Watch,
  { ordering, clock, volumes, signal }: VolumeCalls,
): Promise<SentOrder> {
  for (;;) {
    const sent = { isSent: false };
    const taken = await ordering(before, (talk) => {
      sent.isSent = true;
      tell(0, 'ordered');
      return order(talk, signal);
    });
    const one = { taken, isSent: sent.isSent };
    const waits = before.length > 0 && clock.suspendAwareMs() < endMs;
    if (!waits || !hasNotBegun(one)) return one;
    if (taken.kind === 'transient') tell(0, `waits: ${taken.message}`);
    await pause(clock, volumes.pollMs, signal);
  }
}

function hasNotBegun({ taken, isSent }: SentOrder): boolean {
  if (taken.kind !== 'transient' || taken.reason === 'cancelled') return false;
  return taken.reason === 'busy' || !isSent;
}

/** The controller's volumes in the end, read until they are the wanted ones. */
function seen(listPath: string, targets: readonly Target[], calls: VolumeCalls) {
  const { clock, volumes, fresh, signal } = calls;
  const timings = { windowMs: volumes.shownWithinMs, pollMs: volumes.pollMs };
  const holds = (now: readonly Volume[]): boolean => isAsWanted(now, targets);
  return readUntil(clock, timings, () => readVolumes(listPath, fresh), holds, signal);
}

function isAsWanted(volumes: readonly Volume[], targets: readonly Target[]): boolean {
  const { surplus, missing } = difference(volumes, targets);
  return surplus.length + missing.length === 0;
}

function judge(
  after: BmcResult<readonly Volume[]>,
  targets: readonly Target[],
): BmcResult<BmcAssertion> {
  // (2)
  if (after.kind === 'transient' && after.reason !== 'cancelled') {
    return failed('stillPending', 'the BMC does not tell its volumes any more', after.message);
  }
  if (after.kind !== 'ok') return after;
  if (isAsWanted(after.value, targets)) return ok({ changed: true, notes: [] });
  const message = 'the volumes of the controller are not the wanted ones';
  return failed('notApplied', message, textOf(after.value));
}

function textOf(volumes: readonly Volume[]): string {
  if (volumes.length === 0) return 'it lists no volume';
  const one = ({ raidType, paths }: Volume): string =>
    `${raidType} of ${shown(paths.map((path) => path.slice(path.lastIndexOf('/') + 1)))}`;
  return bounded(`it lists ${volumes.slice(0, namesShownMax).map(one).join('; ')}`);
}

function shown(names: readonly string[]): string {
  return names.length === 0 ? 'none' : names.slice(0, namesShownMax).join(', ');
}

function bounded(text: string): string {
  return text.slice(0, textCharactersMax);
}
