/**
 * The override of the next boot (DSP0268, ComputerSystem `Boot`). Where the system does not take it
 * and names a settings resource with an override, the change goes to that resource: AMI's firmware,
 * which ASRock Rack uses, takes it only there.
 */
import { type BmcAssertion, type BmcResult, type BootOverride, failed, ok } from '../driver.ts';
import { mayHaveHappened, readUntil } from '../read-back.ts';
import { type ActCalls, isRefused, readBy } from './acting.ts';
import {
  type BootPreferences,
  bootPatches,
  judgeBoot,
  type WantedBoot,
  wantedBoot,
} from './choices.ts';
import type { Conversation, Resource } from './conversation.ts';
import { textAt } from './json.ts';
import { type BootFacts, bootFacts, settingsOf } from './system.ts';

/** The override as it was written. */
interface Written {
  readonly wanted: WantedBoot;
  /** The resource that it was written to, which shows it. */
  readonly target: Resource;
  readonly answer: BmcResult<void>;
}

/** Sets the override and reads it back. */
export async function setBootOverride(
  system: Resource,
  override: BootOverride,
  preferences: BootPreferences,
  calls: ActCalls,
): Promise<BmcResult<BmcAssertion>> {
  const written = await write(system, override, preferences, calls);
  if (written.kind !== 'ok') return written;
  const { wanted, target, answer } = written.value;
  if (answer.kind !== 'ok' && !mayHaveHappened(answer)) return answer;
  const manufacturer = textAt(system.body, 'Manufacturer');
  const { clock, readBack, signal } = calls;
  const read = async () => {
    const now = await readBy(calls)(target.path);
    return now.kind === 'ok' ? ok(judgeBoot(wanted, bootFacts(now.value), manufacturer)) : now;
  };
  const after = await readUntil(clock, readBack, read, ({ kind }) => kind !== 'different', signal);
  if (after.kind !== 'ok') return after;
  switch (after.value.kind) {
    case 'same':
      return ok({ changed: true, notes: [] });
    case 'allowed':
      return ok({ changed: true, notes: [after.value.note] });
    case 'different': {
      if (answer.kind !== 'ok') return answer;
      const message = 'the BMC accepted the boot override and did not keep it';
      return failed('notApplied', message, after.value.text);
    }
  }
}

/** Writes it where the BMC takes it. The first refusal says most: of the likelier resource. */
async function write(
  system: Resource,
  override: BootOverride,
  preferences: BootPreferences,
  calls: ActCalls,
): Promise<BmcResult<Written>> {
  const own = () => Promise.resolve(ok(system));
  const settings = () => overrideSettings(system, calls);
  let refused: BmcResult<never> | undefined;
  for (const find of showsOverride(system) ? [own, settings] : [settings, own]) {
    const target = await find();
    if (target.kind !== 'ok') return refused ?? target;
    if (target.value === undefined) continue;
    const facts = bootFacts(target.value);
    // The settings need not list what the system can boot from.
    const targets = facts.targets ?? bootFacts(system).targets;
    const wanted = wantedBoot(override, { ...facts, targets }, preferences);
    const answer = wanted.kind === 'ok' ? await patch(target.value, wanted.value, calls) : wanted;
    if (isRefused(answer)) refused ??= answer;
    else if (wanted.kind !== 'ok') return wanted;
    else return ok({ wanted: wanted.value, target: target.value, answer });
  }
  return refused ?? failed('unsupported', 'the BMC lets nobody override the next boot');
}

/** The settings for the next boot, where they have an override. */
async function overrideSettings(
  system: Resource,
  calls: ActCalls,
): Promise<BmcResult<Resource | undefined>> {
  const found = await settingsOf(system, readBy(calls));
  return found.kind === 'ok' && found.value !== undefined && !showsOverride(found.value)
    ? ok(undefined)
    : found;
}

function showsOverride(resource: Resource): boolean {
  const { target, enabled }: BootFacts = bootFacts(resource);
  return target !== undefined || enabled !== undefined;
}

async function patch(
  target: Resource,
  wanted: WantedBoot,
  { governed, signal }: ActCalls,
): Promise<BmcResult<void>> {
  const [first = {}, ...others] = bootPatches(wanted, bootFacts(target));
  const send = (body: typeof first) =>
    governed((talk: Conversation) => talk.patch(target, body, signal));
  let result = await send(first);
  for (const body of others) {
    if (result.kind !== 'failed' || result.type !== 'rejected') break;
    const again = await send(body);
    // The first refusal says most: it is of the preferred request.
    if (again.kind !== 'failed' || again.type !== 'rejected') result = again;
  }
  return result;
}
