/**
 * Redfish (DMTF DSP0266, DSP0268) over HTTPS. Keeps the invariants of BmcDriver.
 *
 * 1. What only reads is one turn of the governor, from signing in to signing out. What acts gives
 *    the turn back between its readings, so that other features get theirs in the meantime.
 * 2. A success of an action means "accepted" (204 is also the answer to what did nothing): only
 *    what is read back counts.
 * 3. Of several systems the one is taken that fits what is known of the host, or none.
 */
import type { Clock, HttpClient, HttpsLimits } from '@rackwright/platform';
import {
  type Asserted,
  type BmcDriver,
  type BmcIdentity,
  type BmcInventory,
  type BmcPart,
  type BmcResult,
  type BootOverride,
  failed,
  ok,
  type PowerState,
  type SoftOff,
} from '../driver.ts';
import { clearLog } from '../event-log.ts';
import type { GovernedCalls, RestAfter } from '../governor.ts';
import { type ReadBackTimings, readUntil } from '../read-back.ts';
import {
  type BootPreferences,
  bootPatches,
  judgeBoot,
  resetTypeFor,
  type WantedBoot,
  wantedBoot,
} from './choices.ts';
import { Conversation, type RedfishTarget, type Resource } from './conversation.ts';
import { entriesIn, findEventLog, type Get } from './event-log.ts';
import { readInventory } from './inventory.ts';
import { objectAt, pathOf, pathsAt, textAt } from './json.ts';
import type { Refusal } from './refusal.ts';
import {
  bootFacts,
  chassisPathOf,
  type ExpectedSystem,
  identityOf,
  isExpected,
  powerOf,
  resetFacts,
  resetTypes,
} from './system.ts';

export interface RedfishOptions extends BootPreferences {
  readonly limits: HttpsLimits;
}

export const defaultRedfishOptions: RedfishOptions = {
  networkBoot: 'pxe',
  bootMode: 'asFound',
  limits: {
    connectTimeoutMs: 5_000,
    // BMCs were seen to take 20 s for one resource.
    requestTimeoutMs: 25_000,
    bodyBytesMax: 1_048_576,
    headerBytesMax: 16_384,
  },
};

export interface RedfishDriverParts {
  readonly target: RedfishTarget;
  readonly governor: GovernedCalls;
  readonly client: HttpClient;
  readonly clock: Clock;
  readonly options: RedfishOptions;
  readonly readBack: ReadBackTimings;
  /** For BMCs of several systems. */
  readonly expected?: ExpectedSystem;
}

/** A BMC's web server takes one request after the other; a short rest leaves others room. */
export const redfishRest: RestAfter = { look: 20, act: 100 };

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
    return this.#once(async (talk) => {
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
    }, signal);
  }

  powerState(signal?: AbortSignal): Promise<BmcResult<PowerState>> {
    return this.#once((talk) => this.#readPower(talk, signal), signal);
  }

  setBootOverride(override: BootOverride, signal?: AbortSignal): Promise<BmcResult<Asserted>> {
    return this.#inTurns(async (turn) => {
      const set = await turn((talk) => this.#tellBoot(talk, override, signal));
      if (set.kind !== 'ok') return set;
      const wanted = set.value;
      const read = () => turn((talk) => this.#readBoot(talk, wanted, signal));
      const { clock, readBack } = this.#parts;
      const holds = ({ kind }: { kind: string }): boolean => kind !== 'different';
      const after = await readUntil(clock, readBack, read, holds, signal);
      if (after.kind !== 'ok') return after;
      switch (after.value.kind) {
        case 'same':
          return ok({ changed: true, notes: [] });
        case 'allowed':
          return ok({ changed: true, notes: [after.value.note] });
        case 'different': {
          const message = 'the BMC accepted the boot override and did not keep it';
          return failed('notApplied', message, after.value.words);
        }
      }
    }, signal);
  }

  setPower(state: PowerState, signal?: AbortSignal): Promise<BmcResult<Asserted>> {
    return this.#inTurns<Asserted>(async (turn) => {
      const told = await turn((talk) => this.#tellPower(talk, state, state, signal));
      if (told.kind === 'ok' && told.value === 'holds') return ok({ changed: false, notes: [] });
      if (told.kind !== 'ok' && !mayHaveHappened(told)) return told;
      const { clock, readBack } = this.#parts;
      const read = () => turn((talk) => this.#readPower(talk, signal));
      const after = await readUntil(clock, readBack, read, (seen) => seen === state, signal);
      if (after.kind !== 'ok') return after;
      if (after.value === state) return ok({ changed: true, notes: [] });
      if (told.kind !== 'ok') return told;
      const seconds = Math.round(readBack.windowMs / 1_000);
      const late = `still says ${after.value} ${seconds} s later`;
      const message = `the BMC accepted power ${state} and ${late}`;
      return failed('notApplied', message, `PowerState is ${after.value}`);
    }, signal);
  }

  /** One turn: nobody else of ours comes between the reading of the power and the soft off. */
  softOff(signal?: AbortSignal): Promise<BmcResult<SoftOff>> {
    return this.#once(
      async (talk) => {
        const told = await this.#tellPower(talk, 'off', 'softOff', signal);
        return told.kind === 'ok' ? ok({ asked: told.value === 'told' }) : told;
      },
      signal,
      redfishRest.act,
    );
  }

  clearEventLog(signal?: AbortSignal): Promise<BmcResult<Asserted>> {
    return this.#inTurns<Asserted>(async (turn) => {
      const get: Get = (path) => turn((talk) => talk.get(path, signal));
      const system = await turn((talk) => this.#system(talk, signal));
      const log = system.kind === 'ok' ? await findEventLog(system.value, get) : system;
      if (log.kind !== 'ok') return log;
      const { clearPath, entriesPath } = log.value;
      const entries = async () => {
        const listed = await get(entriesPath);
        return listed.kind === 'ok' ? entriesIn(listed.value) : listed;
      };
      const clear = () => turn((talk) => talk.post(clearPath, {}, signal));
      const { clock, readBack } = this.#parts;
      return clearLog({ entries, clear, mayHaveHappened }, clock, readBack, signal);
    }, signal);
  }

  /** One turn per part. */
  readInventory(parts: readonly BmcPart[], signal?: AbortSignal): Promise<BmcResult<BmcInventory>> {
    return this.#inTurns(async (turn) => {
      const system = await turn((talk) => this.#system(talk, signal));
      if (system.kind !== 'ok') return system;
      const read = (path: string) => turn((talk) => talk.get(path, signal));
      return readInventory(system.value, read, parts);
    }, signal);
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
    by: PowerState | 'softOff',
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
    const type = resetTypeFor(by, types);
    if (type.kind !== 'ok') return type;
    const told = await talk.post(reset.path, { ResetType: type.value }, signal);
    return told.kind === 'ok' ? ok('told') : told;
  }

  async #tellBoot(
    talk: Conversation,
    override: BootOverride,
    signal: AbortSignal | undefined,
  ): Promise<BmcResult<WantedBoot>> {
    const system = await this.#system(talk, signal);
    if (system.kind !== 'ok') return system;
    const now = bootFacts(system.value);
    const wanted = wantedBoot(override, now, this.#parts.options);
    if (wanted.kind !== 'ok') return wanted;
    const [first = {}, ...others] = bootPatches(wanted.value, now);
    let told = await talk.patch(system.value, first, signal);
    for (const body of others) {
      if (told.kind !== 'failed' || told.type !== 'rejected') break;
      const again = await talk.patch(system.value, body, signal);
      // The first refusal says most: it is of what we would have liked.
      if (again.kind !== 'failed' || again.type !== 'rejected') told = again;
    }
    return told.kind === 'ok' ? wanted : told;
  }

  async #readBoot(talk: Conversation, wanted: WantedBoot, signal: AbortSignal | undefined) {
    const system = await this.#system(talk, signal);
    if (system.kind !== 'ok') return system;
    const manufacturer = textAt(system.value.body, 'Manufacturer');
    return ok(judgeBoot(wanted, bootFacts(system.value), manufacturer));
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
      paths.length === 1 ? await talk.get(only, signal) : await this.#among(paths, talk, signal);
    if (system.kind === 'ok') this.#systemPath = system.value.path;
    return system;
  }

  async #among(
    paths: readonly string[],
    talk: Conversation,
    signal: AbortSignal | undefined,
  ): Promise<BmcResult<Resource>> {
    const { expected } = this.#parts;
    const fitting: Resource[] = [];
    for (const path of expected === undefined ? [] : paths) {
      const system = await talk.get(path, signal);
      if (system.kind === 'transient') return system;
      if (system.kind === 'ok' && expected !== undefined && isExpected(system.value, expected)) {
        fitting.push(system.value);
      }
    }
    const [only] = fitting;
    if (only !== undefined && fitting.length === 1) return ok(only);
    const fit = fitting.length === 0 ? 'none of them fits' : `${fitting.length} of them fit`;
    const message = `the BMC manages ${paths.length} systems, and ${fit} what is known of the host`;
    return failed('ambiguous', message, paths.join(', ').slice(0, 512));
  }

  /** One turn for all of it. */
  #once<T>(
    act: (talk: Conversation) => Promise<BmcResult<T>>,
    signal: AbortSignal | undefined,
    restMs = redfishRest.look,
  ): Promise<BmcResult<T>> {
    const { governor, target } = this.#parts;
    const turn = async (): Promise<BmcResult<T>> => {
      const talk = new Conversation({ ...this.#parts, limits: this.#parts.options.limits });
      try {
        return await act(talk);
      } finally {
        await talk.end();
      }
    };
    return governor.run(target.credential, turn, { restMs }, signal);
  }

  /** Several turns within one conversation. */
  async #inTurns<T>(
    act: (turn: GovernedCall) => Promise<BmcResult<T>>,
    signal: AbortSignal | undefined,
  ): Promise<BmcResult<T>> {
    const { governor, target, options } = this.#parts;
    const talk = new Conversation({ ...this.#parts, limits: options.limits });
    const rest = { restMs: redfishRest.act };
    const turn: GovernedCall = (one) =>
      governor.run(target.credential, () => one(talk), rest, signal);
    try {
      return await act(turn);
    } finally {
      // Signing out waits for its turn too, but nobody who has given up waits for it.
      const ended = endTurn(governor, target.credential, talk);
      if (signal?.aborted !== true) await ended;
    }
  }
}

async function endTurn(
  governor: GovernedCalls,
  credential: string,
  talk: Conversation,
): Promise<void> {
  const rest = { restMs: redfishRest.look };
  if (talk.hasSession()) await governor.run(credential, () => talk.end(), rest);
  talk.close();
}

function powerIn({ body }: Resource): BmcResult<PowerState> {
  const power = powerOf(body);
  if (power !== undefined) return ok(power);
  const said = JSON.stringify(body['PowerState'] ?? null).slice(0, 64);
  return failed('malformed', 'the BMC does not say whether the system is on', said);
}

/** After these answers to a command only the read-back can tell whether it was carried out. */
function mayHaveHappened(refusal: Refusal): boolean {
  return refusal.kind === 'transient' && refusal.reason === 'unreachable';
}
