/**
 * Redfish (DMTF DSP0266, DSP0268) over HTTPS. Keeps the invariants of BmcDriver.
 *
 * 1. A read is one governed call, from signing in to signing out. An act is several governed calls,
 *    so that calls of other features run between its readings.
 * 2. A success of an action means "accepted" (204 is also the answer to an action without effect):
 *    only what is read back counts.
 * 3. Of several systems the driver takes the one that fits what is known of the host, or none.
 */
import {
  type BiosSettings,
  type BmcAssertion,
  type BmcDriver,
  type BmcIdentity,
  type BmcInventory,
  type BmcPart,
  type BmcPowerAndHealth,
  type BmcResult,
  type BootOverride,
  type FirmwareOrder,
  failed,
  ok,
  type PowerState,
  type SoftOff,
  type TellUpdate,
  type VolumeHooks,
  type VolumeOrder,
} from '../driver.ts';
import { clearLog } from '../event-log.ts';
import type { GovernedCalls, RestAfter } from '../governor.ts';
import { defaultSettleTimings, readUntil } from '../read-back.ts';
import type { BmcBios, BmcBootOrder, BmcFirmware, BmcLog, BmcSensors } from '../readings.ts';
import { defaultRestartTimings, watchRestart } from '../restart.ts';
import type { ActCalls } from './acting.ts';
import { checkBios, readBios, stageBios } from './bios.ts';
import { readBootOrder, setBootOrder } from './boot-order.ts';
import { setBootOverride } from './boot-override.ts';
import { resetTypeFor } from './choices.ts';
import { Conversation, type Get, type Resource } from './conversation.ts';
import { type EventLog, entriesIn, findEventLog, readEntries } from './event-log.ts';
import { defaultUpdateTimings, updateFirmware } from './firmware-update.ts';
import { healthOf } from './health.ts';
import { readInventory } from './inventory.ts';
import { type JsonObject, objectAt, pathOf, pathsAt, textAt } from './json.ts';
import { bmcReset, readFirmware, switchIndicator } from './management.ts';
import { ejectMedia, insertMedia, readMedia } from './media.ts';
import type { RedfishDriverParts } from './parts.ts';
import { mayHaveHappened } from './refusal.ts';
import { readSensors } from './sensors.ts';
import {
  chassisPathOf,
  identityOf,
  powerIn,
  resetFacts,
  resetTypes,
  systemAmong,
} from './system.ts';
import { applyVolumes, defaultVolumeTimings, type VolumeCalls } from './volumes.ts';

/** A BMC's web server takes one request after the other; a short rest leaves others room. */
export const redfishRest: RestAfter = { read: 20, act: 100 };

/** Systems of one BMC that are looked at. */
const systemsMax = 64;

type GovernedCall = <T>(
  act: (talk: Conversation) => Promise<BmcResult<T>>,
) => Promise<BmcResult<T>>;

export class RedfishDriver implements BmcDriver {
  readonly #parts: RedfishDriverParts;
  /** Found once; a system keeps its path. */
  #systemPath: string | undefined;

  constructor(parts: RedfishDriverParts) {
    this.#parts = parts;
  }

  readIdentity(signal?: AbortSignal): Promise<BmcResult<BmcIdentity>> {
    return this.#once((talk) => this.#identity(talk, signal), signal);
  }

  powerState(signal?: AbortSignal): Promise<BmcResult<PowerState>> {
    return this.#once((talk) => this.#readPower(talk, signal), signal);
  }

  readPowerAndHealth(signal?: AbortSignal): Promise<BmcResult<BmcPowerAndHealth>> {
    return this.#once(async (talk) => {
      const system = await this.#system(talk, signal);
      const power = system.kind === 'ok' ? powerIn(system.value) : system;
      if (system.kind !== 'ok' || power.kind !== 'ok') return power as BmcResult<never>;
      const health = healthOf(system.value);
      return ok({ power: power.value, ...(health === undefined ? {} : { health }) });
    }, signal);
  }

  setBootOverride(override: BootOverride, signal?: AbortSignal): Promise<BmcResult<BmcAssertion>> {
    const { options } = this.#parts;
    const set = (system: Resource, calls: ActCalls) =>
      setBootOverride(system, override, options, calls);
    return this.#acting(set, signal);
  }

  setPower(state: PowerState, signal?: AbortSignal): Promise<BmcResult<BmcAssertion>> {
    return this.#inCalls<BmcAssertion>(async (governed) => {
      const order = { by: state, isSent: false };
      const result = await governed((talk) => this.#tellPower(talk, state, order, signal));
      if (result.kind === 'ok' && result.value === 'holds')
        return ok({ changed: false, notes: [] });
      if (result.kind !== 'ok' && !(order.isSent && mayHaveHappened(result))) return result;
      const { clock, readBack } = this.#parts;
      const read = () => governed((talk) => this.#readPower(talk, signal));
      const after = await readUntil(clock, readBack, read, (seen) => seen === state, signal);
      if (after.kind !== 'ok') return after;
      if (after.value === state) return ok({ changed: true, notes: [] });
      if (result.kind !== 'ok') return result;
      const seconds = Math.round(readBack.windowMs / 1_000);
      const late = `still says ${after.value} ${seconds} s later`;
      const message = `the BMC accepted power ${state} and ${late}`;
      return failed('notApplied', message, `PowerState is ${after.value}`);
    }, signal);
  }

  /**
   * One governed call: no other call of ours runs between the reading of the power and the soft
   * off.
   */
  softOff(signal?: AbortSignal): Promise<BmcResult<SoftOff>> {
    return this.#once(
      async (talk) => {
        const order = { by: 'softOff' as const, isSent: false };
        const result = await this.#tellPower(talk, 'off', order, signal);
        return result.kind === 'ok' ? ok({ asked: result.value === 'told' }) : result;
      },
      signal,
      redfishRest.act,
    );
  }

  clearEventLog(signal?: AbortSignal): Promise<BmcResult<BmcAssertion>> {
    return this.#inCalls<BmcAssertion>(async (governed) => {
      const get: Get = (path) => governed((talk) => talk.get(path, signal));
      const system = await governed((talk) => this.#system(talk, signal));
      const isFit = ({ clearPath }: EventLog): boolean => clearPath !== undefined;
      const log = system.kind === 'ok' ? await findEventLog(system.value, get, isFit) : system;
      if (log.kind !== 'ok') return log;
      const { clearPath = '', entriesPath } = log.value;
      const entries = async () => {
        const listed = await get(entriesPath);
        return listed.kind === 'ok' ? entriesIn(listed.value) : listed;
      };
      const clear = () => governed((talk) => talk.post(clearPath, {}, signal));
      const { clock, readBack } = this.#parts;
      return clearLog({ entries, clear, mayHaveHappened }, clock, readBack, signal);
    }, signal);
  }

  /** One governed call per part. */
  readInventory(parts: readonly BmcPart[], signal?: AbortSignal): Promise<BmcResult<BmcInventory>> {
    return this.#inCalls(async (governed) => {
      const system = await governed((talk) => this.#system(talk, signal));
      if (system.kind !== 'ok') return system;
      const read = (path: string) => governed((talk) => talk.get(path, signal));
      return readInventory(system.value, read, parts);
    }, signal);
  }

  readSensors(signal?: AbortSignal): Promise<BmcResult<BmcSensors>> {
    return this.#reading((system, get) => readSensors(system, get), signal);
  }

  readLog(entriesMax: number, signal?: AbortSignal): Promise<BmcResult<BmcLog>> {
    return this.#reading(async (system, get) => {
      const log = await findEventLog(system, get, () => true);
      return log.kind === 'ok' ? readEntries(log.value, get, entriesMax) : log;
    }, signal);
  }

  readFirmware(signal?: AbortSignal): Promise<BmcResult<BmcFirmware>> {
    return this.#inCalls(async (governed) => {
      const root = await governed((talk) => talk.open(signal));
      if (root.kind !== 'ok') return root;
      return readFirmware(root.value, (path) => governed((talk) => talk.get(path, signal)));
    }, signal);
  }

  setIndicator(lit: boolean, signal?: AbortSignal): Promise<BmcResult<BmcAssertion>> {
    return this.#acting((system, calls) => switchIndicator(system, lit, calls), signal);
  }

  readBios(signal?: AbortSignal): Promise<BmcResult<BmcBios>> {
    return this.#reading(readBios, signal);
  }

  stageBios(wanted: BiosSettings, signal?: AbortSignal): Promise<BmcResult<BmcAssertion>> {
    return this.#acting((system, calls) => stageBios(system, wanted, calls), signal);
  }

  checkBios(wanted: BiosSettings, signal?: AbortSignal): Promise<BmcResult<BmcAssertion>> {
    const readBack = this.#parts.settle ?? defaultSettleTimings;
    const check = (system: Resource, calls: ActCalls) =>
      checkBios(system, wanted, { ...calls, readBack });
    return this.#acting(check, signal);
  }

  updateFirmware(
    order: FirmwareOrder,
    tell: TellUpdate,
    signal?: AbortSignal,
  ): Promise<BmcResult<BmcAssertion>> {
    const { clock, readBack, options, update = defaultUpdateTimings } = this.#parts;
    const allowed = options.firmwareUrls;
    const fresh = this.#fresh(signal);
    return this.#inCalls(async (governed) => {
      const root = await governed((talk) => talk.open(signal));
      if (root.kind !== 'ok') return root;
      const calls = { governed, clock, readBack, signal, fresh, update, allowed };
      return updateFirmware(root.value, order, tell, calls);
    }, signal);
  }

  applyVolumes(
    order: VolumeOrder,
    { tell, beforeOrder }: VolumeHooks,
    signal?: AbortSignal,
  ): Promise<BmcResult<BmcAssertion>> {
    const { volumes = defaultVolumeTimings } = this.#parts;
    const ordering: VolumeCalls['ordering'] = (done, send) =>
      this.#once(async (talk) => {
        const seen = await this.#identity(talk, signal);
        if (seen.kind !== 'ok') return seen;
        return beforeOrder(seen.value, done) ?? send(talk);
      }, signal);
    const fresh = this.#fresh(signal);
    const apply = (system: Resource, calls: ActCalls) =>
      applyVolumes(system, order, tell, { ...calls, ordering, fresh, volumes });
    return this.#acting(apply, signal);
  }

  readBootOrder(signal?: AbortSignal): Promise<BmcResult<BmcBootOrder>> {
    return this.#reading(readBootOrder, signal);
  }

  setBootOrder(first: readonly string[], signal?: AbortSignal): Promise<BmcResult<BmcAssertion>> {
    return this.#acting((system, calls) => setBootOrder(system, first, calls), signal);
  }

  resetBmc(signal?: AbortSignal): Promise<BmcResult<BmcAssertion>> {
    return this.#inCalls(async (governed) => {
      const bmc = await governed((talk) => this.#bmc(talk, signal));
      if (bmc.kind !== 'ok') return bmc;
      const reset = bmcReset(bmc.value);
      if (reset.kind !== 'ok') return reset;
      const { path, type } = reset.value;
      const result = await governed((talk) => talk.post(path, { ResetType: type }, signal));
      if (result.kind !== 'ok' && !mayHaveHappened(result)) return result;
      const since = (body: JsonObject): string => textAt(body, 'LastResetTime') ?? '';
      // Each in a conversation of its own: a restart ends the session.
      const answers = () =>
        this.#once(async (talk) => {
          const now = await this.#bmc(talk, signal);
          return now.kind === 'ok' ? ok(since(now.value.body)) : now;
        }, signal);
      const { clock, restart } = this.#parts;
      const timings = restart ?? defaultRestartTimings;
      const seen = await watchRestart(since(bmc.value.body), answers, clock, timings, signal);
      const hasNotBegun = seen.kind === 'failed' && seen.type === 'notApplied';
      return hasNotBegun && result.kind !== 'ok' ? result : seen;
    }, signal);
  }

  insertMedia(url: string, signal?: AbortSignal): Promise<BmcResult<BmcAssertion>> {
    return this.#acting((system, calls) => insertMedia(system, url, calls), signal);
  }

  ejectMedia(signal?: AbortSignal): Promise<BmcResult<BmcAssertion>> {
    return this.#acting(ejectMedia, signal);
  }

  readMedia(signal?: AbortSignal): Promise<BmcResult<string | undefined>> {
    return this.#reading(readMedia, signal);
  }

  /** Each reading in a conversation of its own. */
  #fresh(signal: AbortSignal | undefined): Get {
    return (path) => this.#anew((talk) => talk.get(path, signal), signal);
  }

  #anew<T>(
    act: (talk: Conversation) => Promise<BmcResult<T>>,
    signal: AbortSignal | undefined,
  ): Promise<BmcResult<T>> {
    return this.#once(async (talk) => {
      const root = await talk.open(signal);
      return root.kind === 'ok' ? act(talk) : root;
    }, signal);
  }

  #acting(
    act: (system: Resource, calls: ActCalls) => Promise<BmcResult<BmcAssertion>>,
    signal: AbortSignal | undefined,
  ): Promise<BmcResult<BmcAssertion>> {
    const { clock, readBack } = this.#parts;
    return this.#inCalls(async (governed) => {
      const system = await governed((talk) => this.#system(talk, signal));
      if (system.kind !== 'ok') return system;
      return act(system.value, { governed, clock, readBack, signal });
    }, signal);
  }

  /** A read, with one governed call for each answer. */
  #reading<T>(
    read: (system: Resource, get: Get) => Promise<BmcResult<T>>,
    signal: AbortSignal | undefined,
  ): Promise<BmcResult<T>> {
    return this.#inCalls(async (governed) => {
      const system = await governed((talk) => this.#system(talk, signal));
      if (system.kind !== 'ok') return system;
      return read(system.value, (path) => governed((talk) => talk.get(path, signal)));
    }, signal);
  }

  /** The BMC that manages the system. */
  async #bmc(talk: Conversation, signal: AbortSignal | undefined): Promise<BmcResult<Resource>> {
    const system = await this.#system(talk, signal);
    if (system.kind !== 'ok') return system;
    const [path] = pathsAt(objectAt(system.value.body, 'Links'), 'ManagedBy');
    if (path !== undefined) return talk.get(path, signal);
    return failed('unsupported', 'the BMC does not say which manager is its own');
  }

  async #identity(
    talk: Conversation,
    signal: AbortSignal | undefined,
  ): Promise<BmcResult<BmcIdentity>> {
    const system = await this.#system(talk, signal);
    if (system.kind !== 'ok') return system;
    const path = chassisPathOf(system.value);
    const chassis = path === undefined ? undefined : await talk.get(path, signal);
    if (chassis?.kind === 'transient') return chassis;
    const body = chassis?.kind === 'ok' ? chassis.value.body : undefined;
    const certificateSha256 = talk.certificateSha256();
    return ok({
      ...identityOf(system.value, body),
      ...(certificateSha256 === undefined ? {} : { certificateSha256 }),
    });
  }

  async #readPower(
    talk: Conversation,
    signal: AbortSignal | undefined,
  ): Promise<BmcResult<PowerState>> {
    const system = await this.#system(talk, signal);
    return system.kind === 'ok' ? powerIn(system.value) : system;
  }

  async #tellPower(
    talk: Conversation,
    state: PowerState,
    order: { readonly by: PowerState | 'softOff'; isSent: boolean },
    signal: AbortSignal | undefined,
  ): Promise<BmcResult<'holds' | 'told'>> {
    const system = await this.#system(talk, signal);
    if (system.kind !== 'ok') return system;
    const before = powerIn(system.value);
    if (before.kind !== 'ok') return before;
    if (before.value === state) return ok('holds');
    const reset = resetFacts(system.value);
    if (reset === undefined) {
      return failed('unsupported', 'the BMC offers no way to switch the system');
    }
    let { types } = reset;
    if (types === undefined && reset.actionPath !== undefined) {
      const choices = await talk.get(reset.actionPath, signal);
      if (choices.kind === 'transient') return choices;
      if (choices.kind === 'ok') types = resetTypes(choices.value.body);
    }
    const type = resetTypeFor(order.by, types);
    if (type.kind !== 'ok') return type;
    order.isSent = true;
    const result = await talk.post(reset.path, { ResetType: type.value }, signal);
    return result.kind === 'ok' ? ok('told') : result;
  }

  /** Invariant 3. */
  async #system(talk: Conversation, signal: AbortSignal | undefined): Promise<BmcResult<Resource>> {
    const root = await talk.open(signal);
    if (root.kind !== 'ok') return root;
    if (this.#systemPath !== undefined) return talk.get(this.#systemPath, signal);
    const path = pathOf(objectAt(root.value, 'Systems')) ?? '/redfish/v1/Systems';
    const collection = await talk.get(path, signal);
    if (collection.kind !== 'ok') return collection;
    const paths = pathsAt(collection.value.body, 'Members').slice(0, systemsMax);
    const [only] = paths;
    if (only === undefined) return failed('malformed', `the BMC names no system in ${path}`);
    const system =
      paths.length === 1
        ? await talk.get(only, signal)
        : await systemAmong(paths, this.#parts.expected, (path) => talk.get(path, signal));
    if (system.kind === 'ok') this.#systemPath = system.value.path;
    return system;
  }

  /** One governed call for all of it. */
  #once<T>(
    act: (talk: Conversation) => Promise<BmcResult<T>>,
    signal: AbortSignal | undefined,
    restMs = redfishRest.read,
  ): Promise<BmcResult<T>> {
    const { governor, target } = this.#parts;
    const whole = async (): Promise<BmcResult<T>> => {
      const talk = new Conversation({ ...this.#parts, limits: this.#parts.options.limits });
      try {
        return await act(talk);
      } finally {
        await talk.end();
      }
    };
    return governor.run(target.credential, whole, { restMs }, signal);
  }

  /** Several governed calls within one conversation. */
  async #inCalls<T>(
    act: (governed: GovernedCall) => Promise<BmcResult<T>>,
    signal: AbortSignal | undefined,
  ): Promise<BmcResult<T>> {
    const { governor, target, options } = this.#parts;
    const talk = new Conversation({ ...this.#parts, limits: options.limits });
    const rest = { restMs: redfishRest.act };
    const governed: GovernedCall = (one) =>
      governor.run(target.credential, () => one(talk), rest, signal);
    try {
      return await act(governed);
    } finally {
      // Signing out waits for its slot as well. A caller that has given up does not wait for it.
      const ended = endConversation(governor, target.credential, talk);
      if (signal?.aborted !== true) await ended;
    }
  }
}

async function endConversation(
  governor: GovernedCalls,
  credential: string,
  talk: Conversation,
): Promise<void> {
  const rest = { restMs: redfishRest.read };
  if (talk.hasSession()) await governor.run(credential, () => talk.end(), rest);
  talk.close();
}
