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
  type OnUpdateProgress,
  ok,
  type PowerState,
  type SoftOff,
  type VolumeHooks,
  type VolumeOrder,
} from '../driver.ts';
import { clearLog } from '../event-log.ts';
import type { GovernedCalls, RestAfter } from '../governor.ts';
import { defaultSettleTimings, mayHaveHappened, readUntil } from '../read-back.ts';
import type { BmcBios, BmcBootOrder, BmcFirmware, BmcLog, BmcSensors } from '../readings.ts';
import { defaultRestartTimings, watchRestart } from '../restart.ts';
import { type ActCalls, isAbsent } from './acting.ts';
import { checkBios, readBios, stageBios } from './bios.ts';
import { readBootOrder, setBootOrder } from './boot-order.ts';
import { setBootOverride } from './boot-override.ts';
import { Conversation, type Get, type Resource } from './conversation.ts';
import { type EventLog, entriesIn, findEventLog, readEntries } from './event-log.ts';
import { defaultUpdateTimings, updateFirmware } from './firmware-update.ts';
import { healthOf } from './health.ts';
import { readInventory } from './inventory.ts';
import { type JsonObject, objectAt, pathOf, pathsAt, textAt } from './json.ts';
import { bmcReset, readFirmware, switchIndicator } from './management.ts';
import { ejectMedia, insertMedia, readMedia } from './media.ts';
import { listedIn } from './pages.ts';
import type { RedfishDriverParts } from './parts.ts';
import { type PowerOrder, type PowerStep, sendPower, stillChanging } from './power.ts';
import { readSensors } from './sensors.ts';
import {
  chassisPathOf,
  type ExpectedSystem,
  identityOf,
  knownOf,
  type PowerReading,
  powerIn,
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
  /** A system keeps its path, mostly. */
  #found: { readonly path: string; readonly known: ExpectedSystem | undefined } | undefined;

  constructor(parts: RedfishDriverParts) {
    this.#parts = parts;
  }

  readIdentity(signal?: AbortSignal): Promise<BmcResult<BmcIdentity>> {
    return this.#once((talk) => this.#identity(talk, signal), signal);
  }

  powerState(signal?: AbortSignal): Promise<BmcResult<PowerState>> {
    return this.#once(async (talk) => {
      const seen = await this.#readPower(talk, signal);
      return seen.kind === 'ok' ? ok(seen.value.power) : seen;
    }, signal);
  }

  readPowerAndHealth(signal?: AbortSignal): Promise<BmcResult<BmcPowerAndHealth>> {
    return this.#once(async (talk) => {
      const system = await this.#system(talk, signal);
      if (system.kind !== 'ok') return system;
      const power = powerIn(system.value);
      if (power.kind !== 'ok') return power;
      const health = healthOf(system.value);
      return ok({ power: power.value.power, ...(health === undefined ? {} : { health }) });
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
      const order = { action: state, isSent: false };
      const { clock, readBack } = this.#parts;
      const send = () => governed((talk) => this.#sendPower(talk, order, signal));
      const read = () => governed((talk) => this.#readPower(talk, signal));
      let result = await send();
      if (result.kind === 'ok' && result.value === 'changing') {
        const isSettled = ({ isChanging }: PowerReading): boolean => !isChanging;
        const settled = await readUntil(clock, readBack, read, isSettled, signal);
        if (settled.kind !== 'ok') return settled;
        result = await send();
      }
      if (result.kind === 'ok' && result.value === 'changing') return stillChanging;
      if (result.kind === 'ok' && result.value === 'holds')
        return ok({ changed: false, notes: [] });
      if (result.kind !== 'ok' && !(order.isSent && mayHaveHappened(result))) return result;
      const holds = ({ power, isChanging }: PowerReading) => power === state && !isChanging;
      const after = await readUntil(clock, readBack, read, holds, signal);
      if (after.kind !== 'ok') return after;
      if (holds(after.value)) return ok({ changed: true, notes: [] });
      if (result.kind !== 'ok') return result;
      const seconds = Math.round(readBack.windowMs / 1_000);
      const { power, isChanging } = after.value;
      const still = isChanging ? 'is still changing it' : `still says ${power}`;
      const message = `the BMC accepted power ${state} and ${still} ${seconds} s later`;
      return failed('notApplied', message, `PowerState is ${power}`);
    }, signal);
  }

  /**
   * One governed call: no other call of ours runs between the reading of the power and the soft
   * off.
   */
  async softOff(signal?: AbortSignal): Promise<BmcResult<SoftOff>> {
    const order: PowerOrder = { action: 'softOff', isSent: false };
    const ask = (talk: Conversation) => this.#sendPower(talk, order, signal);
    const result = await this.#once(ask, signal, redfishRest.act);
    if (result.kind === 'ok') {
      return result.value === 'changing'
        ? stillChanging
        : ok({ wasRequested: result.value === 'sent' });
    }
    if (!order.isSent || !mayHaveHappened(result)) return result;
    // A system that stops got the order. Another one is asked again, by the caller.
    const { clock, readBack } = this.#parts;
    const read = () => this.#once((talk) => this.#readPower(talk, signal), signal);
    const stops = ({ power, isChanging }: PowerReading) => (power === 'on') === isChanging;
    const after = await readUntil(clock, readBack, read, stops, signal);
    return after.kind === 'ok' && stops(after.value) ? ok({ wasRequested: true }) : result;
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
      return clearLog({ entries, clear, isOpen: mayHaveHappened }, clock, readBack, signal);
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
    onProgress: OnUpdateProgress,
    signal?: AbortSignal,
  ): Promise<BmcResult<BmcAssertion>> {
    const { clock, readBack, options, update = defaultUpdateTimings } = this.#parts;
    const allowed = options.firmwareUrls;
    const fresh = this.#fresh(signal);
    return this.#inCalls(async (governed) => {
      const root = await governed((talk) => talk.open(signal));
      if (root.kind !== 'ok') return root;
      const calls = { governed, clock, readBack, signal, fresh, update, allowed };
      return updateFirmware(root.value, order, onProgress, calls);
    }, signal);
  }

  applyVolumes(
    order: VolumeOrder,
    { onProgress, beforeOrder }: VolumeHooks,
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
      applyVolumes(system, order, onProgress, { ...calls, ordering, fresh, volumes });
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
    // Without the chassis' serial the machine would be taken for another one.
    if (chassis !== undefined && chassis.kind !== 'ok' && !isAbsent(chassis)) return chassis;
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
  ): Promise<BmcResult<PowerReading>> {
    const system = await this.#system(talk, signal);
    return system.kind === 'ok' ? powerIn(system.value) : system;
  }

  async #sendPower(
    talk: Conversation,
    order: PowerOrder,
    signal: AbortSignal | undefined,
  ): Promise<BmcResult<PowerStep>> {
    const system = await this.#system(talk, signal);
    return system.kind === 'ok' ? sendPower(system.value, order, talk, signal) : system;
  }

  /** Invariant 3. */
  async #system(talk: Conversation, signal: AbortSignal | undefined): Promise<BmcResult<Resource>> {
    const root = await talk.open(signal);
    if (root.kind !== 'ok') return root;
    const get: Get = (path) => talk.get(path, signal);
    const kept = this.#found === undefined ? undefined : await get(this.#found.path);
    if (kept !== undefined && !isAbsent(kept)) return kept;
    // Under another path by now: the same system, not just any that is left.
    const known = this.#found?.known;
    const path = pathOf(objectAt(root.value, 'Systems')) ?? '/redfish/v1/Systems';
    const listed = await listedIn(path, get, systemsMax);
    if ('kind' in listed) return listed;
    const { paths } = listed;
    const [only] = paths;
    if (only === undefined) return failed('malformed', `the BMC names no system in ${path}`);
    const isClear = paths.length === 1 && !listed.hasMore && known === undefined;
    const { expected } = this.#parts;
    const system = isClear ? await get(only) : await systemAmong(paths, known ?? expected, get);
    if (system.kind === 'ok') {
      this.#found = { path: system.value.path, known: knownOf(system.value) };
    }
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
