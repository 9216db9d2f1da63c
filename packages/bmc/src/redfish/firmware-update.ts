/**
 * An update of firmware (DSP0268: UpdateService.SimpleUpdate, Task, SoftwareInventory).
 *
 * 1. It is ordered once: whatever became of the answer, what follows only reads. Nothing that
 *    happens after the order is transient, so nobody orders it again by itself.
 * 2. A task is a hint. It may vanish with a restart of the BMC, or be another one's by then: only
 *    the version that is read back counts.
 * 3. The BMC fetches only from where this agent's configuration lets it.
 */
import { type Clock, pause } from '@rackwright/platform';
import {
  type Asserted,
  type BmcFailed,
  type BmcResult,
  type FirmwareOrder,
  failed,
  ok,
  type TellUpdate,
  transient,
} from '../driver.ts';
import { type ReadBackTimings, readUntil } from '../read-back.ts';
import { firmwareComponentsMax } from '../readings.ts';
import { waysOf } from '../vendors.ts';
import { type ActCalls, isRefused, readBy } from './acting.ts';
import type { Get, Resource, Taken } from './conversation.ts';
import { type JsonObject, numberAt, objectAt, objectsAt, pathOf, pathsAt, textAt } from './json.ts';
import { mayHaveHappened } from './refusal.ts';

export interface UpdateTimings {
  /** A task may take so long, and what was ordered without one. */
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

export interface UpdateCalls extends ActCalls {
  /** Reads in a conversation of its own: a restart of the BMC ends every session. */
  readonly fresh: Get;
  readonly update: UpdateTimings;
  /** URLs below which firmware may be fetched, as the configuration lists them. */
  readonly allowed: readonly string[];
}

/** Whether the BMC may fetch `uri`: the same origin, and whole parts of the path. */
export function mayFetch(uri: string, allowed: readonly string[]): boolean {
  return isPlainUrl(uri) && allowed.some((prefix) => isPlainUrl(prefix) && isBelow(uri, prefix));
}

/** Without user, query, codes or steps in its path: nobody reads it in two ways. */
export function isPlainUrl(text: string): boolean {
  const isPlain = /^https?:\/\/[A-Za-z0-9.:[\]-]{1,255}(\/[A-Za-z0-9._~-]+)*\/?$/.test(text);
  return isPlain && text.length <= 512 && !/\/\.{1,2}(\/|$)/.test(text) && URL.canParse(text);
}

function isBelow(uri: string, prefix: string): boolean {
  const [url, above] = [new URL(uri), new URL(prefix)];
  const path = above.pathname.endsWith('/') ? above.pathname : `${above.pathname}/`;
  return url.origin === above.origin && url.pathname.startsWith(path);
}

export async function updateFirmware(
  root: JsonObject,
  order: FirmwareOrder,
  tell: TellUpdate,
  calls: UpdateCalls,
): Promise<BmcResult<Asserted>> {
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
  const over = taskPath === undefined ? 'open' : await watchTask(taskPath, endMs, tell, calls);
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
  const list = path === undefined ? noUpdates : await get(path);
  if (list.kind !== 'ok') return list;
  const known: string[] = [];
  for (const member of pathsAt(list.value.body, 'Members').slice(0, firmwareComponentsMax)) {
    const component = await get(member);
    if (component.kind === 'transient') return component;
    if (component.kind !== 'ok') continue;
    const name = textAt(component.value.body, 'Id') ?? '';
    if (name === id) return component;
    known.push(name);
  }
  const words = `it lists ${known.join(', ')}`.slice(0, 512);
  return failed('updateFailed', `the BMC lists no component ${id}`, words);
}

function versionOf({ body }: Resource): string {
  return textAt(body, 'Version') ?? '';
}

/** The path of its task; undefined: there is none, or the answer was lost. */
async function orderUpdate(
  service: Resource,
  component: Resource,
  uri: string,
  { turn, signal }: UpdateCalls,
): Promise<BmcResult<string | undefined>> {
  const action = objectAt(objectAt(service.body, 'Actions'), '#UpdateService.SimpleUpdate');
  const path = pathOf(action, 'target');
  if (path === undefined) return noUpdates;
  const imageAlone = { ImageURI: uri, Targets: [component.path] };
  const TransferProtocol = uri.startsWith('https:') ? 'HTTPS' : 'HTTP';
  const bodies = { imageAlone, withTransfer: { ...imageAlone, TransferProtocol } };
  let refused: BmcFailed | undefined;
  for (const way of waysOf('simpleUpdate')) {
    const taken = await turn((talk) => talk.order(path, bodies[way], signal));
    if (taken.kind === 'ok') return ok(taskIn(taken.value));
    if (!isRefused(taken)) {
      // (1) It may be under way.
      const isOpen = mayHaveHappened(taken) || isTrouble(taken);
      return isOpen ? ok(undefined) : taken;
    }
    refused ??= taken;
  }
  return failed('updateFailed', 'the BMC refused the update', refused?.backendWords);
}

function isTrouble(result: BmcResult<unknown>): boolean {
  return result.kind === 'transient' && result.reason === 'trouble';
}

/** Services answer a task, or name where to look for it. */
function taskIn({ body, location }: Taken): string | undefined {
  const isTask = textAt(body, '@odata.type')?.startsWith('#Task.') === true;
  return (isTask ? pathOf(body) : undefined) ?? location;
}

/**
 * What became of the task: `completed`, `open` when it can no longer be seen, or how it failed.
 */
async function watchTask(
  path: string,
  endMs: number,
  tell: TellUpdate,
  { clock, fresh, update, signal }: UpdateCalls,
): Promise<'completed' | 'open' | BmcResult<never>> {
  let named: string | undefined;
  let said = '';
  for (;;) {
    const task = await fresh(path);
    if (signal?.aborted === true) return transient('cancelled', 'the update is not waited for');
    if (task.kind === 'failed') return isGone(task) ? 'open' : task;
    if (task.kind === 'ok') {
      const { body } = task.value;
      const state = textAt(body, 'TaskState');
      const name = `${textAt(body, 'Id') ?? ''} ${textAt(body, 'StartTime') ?? ''}`;
      named ??= name;
      // A monitor that has answered for good, or another's task in its place.
      if (state === undefined || name !== named) return 'open';
      if (state === 'Completed') return 'completed';
      if (failedStates.has(state)) return failed('updateFailed', taskWords(state), wordsIn(body));
      const percent = Math.min(Math.max(numberAt(body, 'PercentComplete') ?? 0, 0), 100);
      said = `${state}, ${percent} %`;
      tell(Math.round(percent), state);
    }
    if (clock.suspendAwareMs() >= endMs) {
      return failed('stillPending', 'the update has not ended in time', said);
    }
    await pauseWithin(clock, update, endMs, signal);
  }
}

function pauseWithin(
  clock: Clock,
  { pollMs }: UpdateTimings,
  endMs: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  const leftMs = Math.max(endMs - clock.suspendAwareMs(), 1);
  return pause(clock, Math.min(pollMs, leftMs), signal);
}

/** DSP0268, Task: states that end it. */
const failedStates: ReadonlySet<string> = new Set(['Exception', 'Killed', 'Cancelled']);

function taskWords(state: string): string {
  return `the update has failed: its task ended as ${state}`;
}

function wordsIn(body: JsonObject): string {
  const messages = objectsAt(body, 'Messages').slice(0, 4);
  const texts = messages.map((one) => textAt(one, 'Message') ?? textAt(one, 'MessageId') ?? '');
  return texts.join('; ').slice(0, 512);
}

/** Gone with a restart, deleted after its end, or a monitor that ends without a body. */
function isGone({ type }: BmcFailed): boolean {
  return type === 'unsupported' || type === 'protocol' || type === 'malformed';
}

async function readBack(
  path: string,
  { component, version }: FirmwareOrder,
  endMs: number,
  { clock, fresh, update, signal }: UpdateCalls,
): Promise<BmcResult<Asserted>> {
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
