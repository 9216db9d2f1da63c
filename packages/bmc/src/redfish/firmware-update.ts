/**
 * An update of firmware (DSP0268: UpdateService.SimpleUpdate, Task, SoftwareInventory).
 *
 * 1. It is ordered once: after the order the driver only reads, also when the answer was lost. No
 *    failure after the order is transient, so the order is never repeated automatically.
 * 2. A task is a hint. It may vanish with a restart of the BMC, or its number may belong to another
 *    task by then: only the version that is read back counts.
 * 3. The BMC fetches only from places that this agent's configuration allows.
 */
import {
  type BmcAssertion,
  type BmcFailed,
  type BmcResult,
  type FirmwareOrder,
  failed,
  type OnUpdateProgress,
  ok,
  transient,
} from '../driver.ts';
import { mayHaveHappened, type ReadBackTimings, readUntil } from '../read-back.ts';
import { firmwareComponentsMax } from '../readings.ts';
import { variantsOf } from '../vendors.ts';
import { FirstFailure, isRefused, readBy } from './acting.ts';
import type { Get, Resource } from './conversation.ts';
import { type JsonObject, objectAt, pathOf, textAt } from './json.ts';
import { listedIn } from './pages.ts';
import { isPlainUrl } from './plain-url.ts';
import { type TaskCalls, taskIn, watchTask } from './tasks.ts';

export interface UpdateTimings {
  /** The maximum time of a task, and of an order without one. */
  readonly windowMs: number;
  readonly pollMs: number;
  /** After its task is over, the version shows within this: a BMC may restart in between. */
  readonly shownWithinMs: number;
}

export const defaultUpdateTimings: UpdateTimings = {
  windowMs: 5_400_000,
  pollMs: 10_000,
  shownWithinMs: 900_000,
};

export interface UpdateCalls extends TaskCalls {
  readonly update: UpdateTimings;
  /** URLs below which firmware may be fetched, as the configuration lists them. */
  readonly allowed: readonly string[];
}

/** Whether the BMC may fetch `uri`: the same origin, and whole parts of the path. */
export function mayFetch(uri: string, allowed: readonly string[]): boolean {
  return isPlainUrl(uri) && allowed.some((prefix) => isPlainUrl(prefix) && isBelow(uri, prefix));
}

function isBelow(uri: string, prefix: string): boolean {
  const [url, above] = [new URL(uri), new URL(prefix)];
  const path = above.pathname.endsWith('/') ? above.pathname : `${above.pathname}/`;
  return url.origin === above.origin && url.pathname.startsWith(path);
}

export async function updateFirmware(
  root: JsonObject,
  order: FirmwareOrder,
  onProgress: OnUpdateProgress,
  calls: UpdateCalls,
): Promise<BmcResult<BmcAssertion>> {
  const get = readBy(calls);
  const path = pathOf(objectAt(root, 'UpdateService'));
  const service = path === undefined ? noUpdates : await get(path);
  if (service.kind !== 'ok') return service;
  const found = await findComponent(service.value, order.component, get);
  if (found.kind !== 'ok') return found;
  const component = found.value;
  if (versionOf(component) === order.version) return ok({ changed: false, notes: [] });
  const endMs = calls.clock.suspendAwareMs() + calls.update.windowMs;
  if (order.checkOnly) return readBack(component.path, order, endMs, calls);
  if (!mayFetch(order.uri, calls.allowed)) return notAllowed(order.uri);
  if (component.body['Updateable'] === false) {
    return failed('updateFailed', `the BMC says that ${order.component} cannot be updated`);
  }
  const ordered = await orderUpdate(service.value, component, order.uri, calls);
  if (ordered.kind !== 'ok') return ordered;
  const taskPath = ordered.value;
  const { pollMs } = calls.update;
  const of = { name: 'the update', failsAs: 'updateFailed', endMs, pollMs } as const;
  const over = taskPath === undefined ? 'open' : await watchTask(taskPath, of, onProgress, calls);
  if (typeof over !== 'string') return over;
  const { shownWithinMs } = calls.update;
  const shownMs = calls.clock.suspendAwareMs() + shownWithinMs;
  return readBack(component.path, order, over === 'completed' ? shownMs : endMs, calls);
}

const noUpdates = failed('unsupported', 'the BMC takes no updates of firmware');

function notAllowed(uri: string): BmcFailed {
  const message =
    `this agent lets no BMC fetch ${uri.slice(0, 200)}: it has to be a plain URL below one of ` +
    'redfishFirmwareUrls in its configuration';
  return failed('notAllowed', message);
}

async function findComponent(
  service: Resource,
  id: string,
  get: Get,
): Promise<BmcResult<Resource>> {
  const path = pathOf(objectAt(service.body, 'FirmwareInventory'));
  const list = path === undefined ? noUpdates : await listedIn(path, get, firmwareComponentsMax);
  if ('kind' in list) return list;
  const known: string[] = [];
  const unread = new FirstFailure();
  for (const member of list.paths) {
    const component = await get(member);
    if (component.kind === 'transient') return component;
    unread.note(component);
    if (component.kind !== 'ok') continue;
    const name = textAt(component.value.body, 'Id') ?? '';
    if (name === id) return component;
    known.push(name);
  }
  const failure = unread.failure ?? list.notRead;
  if (failure !== undefined) return failure;
  const text = `it lists ${known.join(', ')}`.slice(0, 512);
  return failed('updateFailed', `the BMC lists no component ${id}`, text);
}

function versionOf({ body }: Resource): string {
  return textAt(body, 'Version') ?? '';
}

/** The path of its task; undefined: there is none, or the answer was lost. */
async function orderUpdate(
  service: Resource,
  component: Resource,
  uri: string,
  { governed, signal }: UpdateCalls,
): Promise<BmcResult<string | undefined>> {
  const action = objectAt(objectAt(service.body, 'Actions'), '#UpdateService.SimpleUpdate');
  const path = pathOf(action, 'target');
  if (path === undefined) return noUpdates;
  const imageAlone = { ImageURI: uri, Targets: [component.path] };
  const TransferProtocol = uri.startsWith('https:') ? 'HTTPS' : 'HTTP';
  const bodies = { imageAlone, withTransfer: { ...imageAlone, TransferProtocol } };
  let refused: BmcFailed | undefined;
  for (const way of variantsOf('simpleUpdate')) {
    const taken = await governed((talk) => talk.order(path, bodies[way], signal));
    if (taken.kind === 'ok') return ok(taskIn(taken.value));
    if (!isRefused(taken)) {
      // (1) It may be under way.
      return mayHaveHappened(taken) ? ok(undefined) : taken;
    }
    refused ??= taken;
  }
  return failed('updateFailed', 'the BMC refused the update', refused?.backendText);
}

async function readBack(
  path: string,
  { component, version }: FirmwareOrder,
  endMs: number,
  { clock, fresh, update, signal }: UpdateCalls,
): Promise<BmcResult<BmcAssertion>> {
  const windowMs = Math.max(endMs - clock.suspendAwareMs(), 0);
  const timings: ReadBackTimings = { windowMs, pollMs: update.pollMs };
  const read = async () => {
    const now = await fresh(path);
    return now.kind === 'ok' ? ok(versionOf(now.value)) : now;
  };
  const after = await readUntil(clock, timings, read, (now) => now === version, signal);
  if (signal?.aborted === true) return transient('cancelled', 'the update is not waited for');
  if (after.kind === 'failed') return after;
  // (1)
  if (after.kind === 'transient') {
    return failed('stillPending', 'the BMC has not come back from the update', after.message);
  }
  if (after.value === version) return ok({ changed: true, notes: [] });
  const message = `${component} does not have version ${version} after its update`;
  return failed('notApplied', message, `it reads ${after.value}`);
}
