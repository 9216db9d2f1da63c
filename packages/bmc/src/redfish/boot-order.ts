/**
 * The persistent boot order (DSP0268, ComputerSystem `Boot.BootOrder` and BootOption). Where the
 * system names a settings resource that has an order, the change goes to that resource, and the
 * next boot applies it.
 */
import { type BmcAssertion, type BmcResult, failed, ok } from '../driver.ts';
import { mayHaveHappened, readUntil } from '../read-back.ts';
import { type BmcBootOrder, bootOptionsMax } from '../readings.ts';
import { type ActCalls, isRefused, readBy } from './acting.ts';
import type { Get, Resource } from './conversation.ts';
import { objectAt, pathOf, textAt, textsAt } from './json.ts';
import { listedIn } from './pages.ts';
import { settingsOf } from './system.ts';

const none = failed('unsupported', 'the BMC shows no persistent boot order');

export async function readBootOrder(system: Resource, get: Get): Promise<BmcResult<BmcBootOrder>> {
  const order = orderIn(system);
  if (order === undefined) return none;
  const names = await optionNames(system, get);
  if (names.kind === 'transient') return names;
  const known = names.kind === 'ok' ? names.value : new Map<string, string>();
  const options = order.slice(0, bootOptionsMax).map((id) => ({ id, name: known.get(id) ?? '' }));
  return ok({ options, complete: options.length === order.length });
}

/** The name of each option, by its reference in the order. */
async function optionNames(
  system: Resource,
  get: Get,
): Promise<BmcResult<ReadonlyMap<string, string>>> {
  const names = new Map<string, string>();
  const path = pathOf(objectAt(objectAt(system.body, 'Boot'), 'BootOptions'));
  if (path === undefined) return ok(names);
  const list = await listedIn(path, get, bootOptionsMax);
  if ('kind' in list) return list;
  for (const member of list.paths) {
    const option = await get(member);
    if (option.kind === 'transient') return option;
    if (option.kind !== 'ok') continue;
    const { body } = option.value;
    const name = textAt(body, 'DisplayName') ?? textAt(body, 'Name') ?? '';
    names.set(textAt(body, 'BootOptionReference') ?? textAt(body, 'Id') ?? '', name);
  }
  return ok(names);
}

/** Puts `first` at the head of the order; all others stay behind them. */
export async function setBootOrder(
  system: Resource,
  first: readonly string[],
  calls: ActCalls,
): Promise<BmcResult<BmcAssertion>> {
  const now = orderIn(system);
  if (now === undefined) return none;
  const unknown = first.filter((id) => !now.includes(id));
  if (unknown.length > 0) {
    const message = `the boot order has no ${unknown.join(', ')}; it has ${now.join(', ')}`;
    return failed('settingUnknown', message.slice(0, 512));
  }
  const wanted = [...first, ...now.filter((id) => !first.includes(id))];
  const isWanted = (order: readonly string[] | undefined) => order?.join() === wanted.join();
  const target = await orderTarget(system, readBy(calls));
  if (target.kind !== 'ok') return target;
  if (isWanted(now) && isWanted(orderIn(target.value))) return ok({ changed: false, notes: [] });
  const { governed, clock, readBack, signal } = calls;
  const changed = await governed((talk) =>
    talk.patch(target.value, { Boot: { BootOrder: wanted } }, signal),
  );
  if (isRefused(changed)) {
    return failed('settingRefused', 'the BMC refused the boot order', changed.backendText);
  }
  if (changed.kind !== 'ok' && !mayHaveHappened(changed)) return changed;
  const read = async () => {
    const after = await readBy(calls)(target.value.path);
    return after.kind === 'ok' ? ok(orderIn(after.value)) : after;
  };
  const after = await readUntil(clock, readBack, read, isWanted, signal);
  if (after.kind !== 'ok') return after;
  const isLater = target.value.path !== system.path;
  const notes = isLater ? ['the next boot takes the order'] : [];
  if (isWanted(after.value)) return ok({ changed: true, notes });
  if (changed.kind !== 'ok') return changed;
  const text = `it reads ${after.value?.join(', ') ?? 'nothing'}`;
  return failed('notApplied', 'the BMC accepted the boot order and did not keep it', text);
}

/** The resource to change: the settings for the next boot, where they have an order. */
async function orderTarget(system: Resource, get: Get): Promise<BmcResult<Resource>> {
  const found = await settingsOf(system, get);
  if (found.kind !== 'ok') return found;
  const settings = found.value;
  return ok(settings !== undefined && orderIn(settings) !== undefined ? settings : system);
}

function orderIn({ body }: Resource): readonly string[] | undefined {
  return textsAt(objectAt(body, 'Boot'), 'BootOrder');
}
