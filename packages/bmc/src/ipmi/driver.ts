import { type Clock, type Exec, type Names, readAddress } from '@rackwright/platform';
import {
  type BmcAssertion,
  type BmcConsole,
  type BmcDriver,
  type BmcFailed,
  type BmcIdentity,
  type BmcPowerAndHealth,
  type BmcResult,
  type BmcTransient,
  type BootOverride,
  failed,
  type OnConsoleOutput,
  ok,
  type PowerState,
  type SoftOff,
} from '../driver.ts';
import { clearLog, type LogCalls } from '../event-log.ts';
import type { GovernedCalls, RestAfter } from '../governor.ts';
import { mayHaveHappened, type ReadBackTimings, readUntil } from '../read-back.ts';
import type { BmcFirmware, BmcLog, BmcSensors } from '../readings.ts';
import { defaultRestartTimings, type RestartTimings, watchRestart } from '../restart.ts';
import { vendorDifference } from '../vendors.ts';
import {
  type BootFlags,
  bootFlagsDifference,
  bootFlagsFor,
  chassisPower,
  fruIdentity,
  guidHex,
  logEntries,
  manufacturerId,
  rawBytes,
  readBootFlags,
} from './answers.ts';
import { callIpmitool, type IpmiTarget, type IpmitoolListing } from './ipmitool.ts';
import type { IpmitoolOptions } from './options.ts';
import { chassisHealth, firmwareVersion, logOf, sensorsOf } from './sensors.ts';
import { openSol } from './sol.ts';

/** The commands we use, as ipmitool's arguments (sections of the IPMI 2.0 specification). */
const commands = {
  /** §20.1 */ deviceId: ['raw', '0x06', '0x01'],
  /** §22.14 */ systemGuid: ['raw', '0x06', '0x37'],
  /** §28.2 */ chassisStatus: ['raw', '0x00', '0x01'],
  /** §28.3: 1 is power up, 0 is power down at once */
  chassisControl: (on: boolean) => ['raw', '0x00', '0x02', on ? '0x01' : '0x00'],
  /** §28.3, option 5: a shutdown by ACPI, as if it were too hot; optional for a BMC */
  softOff: ['raw', '0x00', '0x02', '0x05'],
  /** §28.12, parameter 5 */
  setBootFlags: ({ flags, device }: BootFlags) => {
    const set = ['0x05', hex(flags), hex(device), '0x00', '0x00', '0x00'];
    return ['raw', '0x00', '0x08', ...set];
  },
  /** §28.13, parameter 5 */ getBootFlags: ['raw', '0x00', '0x09', '0x05', '0x00', '0x00'],
  /** The built-in FRU */ fru: ['fru', 'print', '0'],
  /** §31.2 */ logInfo: ['raw', '0x0a', '0x40'],
  /** Full sensor records, for only these measure */ sensors: ['sdr', 'list', 'full'],
  log: (entriesMax: number) => ['sel', 'elist', 'last', `${entriesMax}`],
  /** §28.5: so many seconds; with 0 the lamp goes out, and `force` keeps it on for ever */
  identify: (lit: boolean) => ['chassis', 'identify', lit ? 'force' : '0'],
  /** §20.2 */ coldReset: ['raw', '0x06', '0x02'],
  /** §31.4 and §31.9 in one session, for a reservation need not outlive its own */
  clearLog: ['sel', 'clear'],
} as const;

export interface IpmiDriverParts {
  readonly target: IpmiTarget;
  readonly governor: GovernedCalls;
  readonly exec: Exec;
  /** ipmitool gets addresses only; without this, a BMC has to be named by its address. */
  readonly names?: Names;
  readonly clock: Clock;
  readonly ipmitool: IpmitoolOptions;
  readonly readBack: ReadBackTimings;
  /** Unset: `defaultRestartTimings`. */
  readonly restart?: RestartTimings;
}

/** A list of sensors or entries costs a BMC one exchange for each, and many are slow. */
const listing: IpmitoolListing = { timeoutMs: 120_000, outputBytesMax: 262_144 };

/**
 * Each command signs in and out again, and a BMC has few sessions and a slow processor. Acts keep
 * it busy for a while (chassis control, flash).
 */
export const ipmiRest: RestAfter = { read: 100, act: 500 };

/**
 * IPMI 2.0 over LAN through ipmitool. Keeps the invariants of BmcDriver; each command passes the
 * governor by itself, so that calls of other features run during a read-back window.
 */
export class IpmiDriver implements BmcDriver {
  readonly #parts: IpmiDriverParts;

  constructor(parts: IpmiDriverParts) {
    this.#parts = parts;
  }

  async readIdentity(signal?: AbortSignal): Promise<BmcResult<BmcIdentity>> {
    const maker = await this.#raw(commands.deviceId, manufacturerId, signal);
    if (maker.kind !== 'ok') return maker;
    const guid = await this.#raw(commands.systemGuid, guidHex, signal);
    if (guid.kind !== 'ok' && !saysNotThere(guid)) return guid;
    const fru = await this.#call(commands.fru, signal);
    if (fru.kind !== 'ok' && !saysNotThere(fru)) return fru;
    return ok({
      manufacturerId: maker.value,
      ...(guid.kind === 'ok' ? { guidHex: guid.value } : {}),
      ...(fru.kind === 'ok' ? fruIdentity(fru.value) : {}),
    });
  }

  powerState(signal?: AbortSignal): Promise<BmcResult<PowerState>> {
    return this.#raw(commands.chassisStatus, chassisPower, signal);
  }

  readPowerAndHealth(signal?: AbortSignal): Promise<BmcResult<BmcPowerAndHealth>> {
    const parse = (bytes: readonly number[]): BmcPowerAndHealth | undefined => {
      const power = chassisPower(bytes);
      const health = chassisHealth(bytes);
      return power === undefined || health === undefined ? undefined : { power, health };
    };
    return this.#raw(commands.chassisStatus, parse, signal);
  }

  async readSensors(signal?: AbortSignal): Promise<BmcResult<BmcSensors>> {
    const listed = await this.#call(commands.sensors, signal, ipmiRest.read, listing);
    if (listed.kind !== 'ok') return listed;
    const seen = await this.readPowerAndHealth(signal);
    if (seen.kind === 'transient') return seen;
    const health = seen.kind === 'ok' ? seen.value.health : undefined;
    return ok({ ...(health === undefined ? {} : { health }), ...sensorsOf(listed.value) });
  }

  async readLog(entriesMax: number, signal?: AbortSignal): Promise<BmcResult<BmcLog>> {
    const count = await this.#raw(commands.logInfo, logEntries, signal);
    if (count.kind !== 'ok') return count;
    if (count.value === 0) return ok({ entries: [], complete: true });
    const wanted = Math.min(entriesMax, count.value);
    const listed = await this.#call(commands.log(wanted), signal, ipmiRest.read, listing);
    if (listed.kind !== 'ok') return listed;
    const { entries } = logOf(listed.value, wanted);
    return ok({ entries, complete: entries.length === count.value });
  }

  async readFirmware(signal?: AbortSignal): Promise<BmcResult<BmcFirmware>> {
    const version = await this.#raw(commands.deviceId, firmwareVersion, signal);
    if (version.kind !== 'ok') return version;
    const bmc = { id: 'BMC', name: 'BMC', version: version.value };
    return ok({ components: [bmc], complete: true });
  }

  /** IPMI 2.0 has no read of the lamp but by optional bits that few BMCs set (§28.2, byte 3). */
  async setIndicator(lit: boolean, signal?: AbortSignal): Promise<BmcResult<BmcAssertion>> {
    const done = await this.#act(commands.identify(lit), signal);
    if (done.kind !== 'ok') return done;
    return ok({ changed: true, notes: ['IPMI does not let the lamp be read back'] });
  }

  async resetBmc(signal?: AbortSignal): Promise<BmcResult<BmcAssertion>> {
    const done = await this.#act(commands.coldReset, signal);
    // The BMC may restart before it answers.
    if (done.kind !== 'ok' && !isOpen(done)) return done;
    const answers = async () => {
      const answer = await this.#raw(commands.deviceId, manufacturerId, signal);
      return answer.kind === 'ok' ? ok('') : answer;
    };
    const { clock, restart } = this.#parts;
    return watchRestart('', answers, clock, restart ?? defaultRestartTimings, signal);
  }

  /** Serial over LAN (§15). */
  openConsole(hear: OnConsoleOutput, signal?: AbortSignal): Promise<BmcResult<BmcConsole>> {
    const { governor, exec, clock, ipmitool, target } = this.#parts;
    const act = async (): Promise<BmcResult<BmcConsole>> => {
      const address = await this.#address();
      if (typeof address !== 'string') return address;
      return openSol({ exec, clock, ipmitool, target: { ...target, address } }, hear, signal);
    };
    return governor.run(target.credential, act, { restMs: ipmiRest.read }, signal);
  }

  /**
   * Always sets, even when the flags read as wanted: BMCs drop them by a timer of 60 s (§28.12,
   * parameter 3), and setting starts it anew.
   */
  async setBootOverride(
    override: BootOverride,
    signal?: AbortSignal,
  ): Promise<BmcResult<BmcAssertion>> {
    const wanted = bootFlagsFor(override);
    const done = await this.#act(commands.setBootFlags(wanted), signal);
    if (done.kind !== 'ok') return done;
    const read = await this.#raw(commands.getBootFlags, readBootFlags, signal);
    if (read.kind !== 'ok') return read;
    const difference = bootFlagsDifference(wanted, read.value);
    if (difference === 'none') return ok({ changed: true, notes: [] });
    const text = `set ${flagText(wanted)}, read back ${flagText(read.value)}`;
    if (difference === 'flags') {
      const maker = await this.#raw(commands.deviceId, manufacturerId, signal);
      if (maker.kind !== 'ok') return maker;
      const vendor = vendorDifference({ enterprise: maker.value });
      if (vendor.bootFlagsReadBack === 'selectorOnly') {
        return ok({ changed: true, notes: [`${vendor.maker}: ${text}`] });
      }
    }
    return failed('notApplied', 'the BMC accepted the boot override and did not keep it', text);
  }

  async setPower(state: PowerState, signal?: AbortSignal): Promise<BmcResult<BmcAssertion>> {
    const before = await this.powerState(signal);
    if (before.kind !== 'ok') return before;
    if (before.value === state) return ok({ changed: false, notes: [] });
    const done = await this.#act(commands.chassisControl(state === 'on'), signal);
    if (done.kind !== 'ok' && !isOpen(done)) return done;
    const { clock, readBack } = this.#parts;
    const read = () => this.powerState(signal);
    const after = await readUntil(clock, readBack, read, (seen) => seen === state, signal);
    if (after.kind !== 'ok') return after;
    if (after.value === state) return ok({ changed: true, notes: [] });
    if (done.kind !== 'ok') return done;
    const seconds = Math.round(readBack.windowMs / 1_000);
    const late = `still says ${after.value} ${seconds} s later`;
    const message = `the BMC accepted power ${state} and ${late}`;
    return failed('notApplied', message, `chassis power is ${after.value}`);
  }

  /**
   * Some BMCs implement a soft off as a press of the power button, which switches a machine on that
   * is off. So the power is read right before. A system may stop between the two calls. The caller
   * that waits for it reads the power again and forces it off
   * (`agent/src/operations/shut-down.ts`).
   */
  async softOff(signal?: AbortSignal): Promise<BmcResult<SoftOff>> {
    const before = await this.powerState(signal);
    if (before.kind !== 'ok') return before;
    if (before.value === 'off') return ok({ wasRequested: false });
    const done = await this.#act(commands.softOff, signal);
    if (done.kind === 'ok') return ok({ wasRequested: true });
    if (!mayHaveHappened(done)) return done;
    // A system that stops got the order. Another one is asked again, by the caller.
    const { clock, readBack } = this.#parts;
    const read = () => this.powerState(signal);
    const after = await readUntil(clock, readBack, read, (seen) => seen === 'off', signal);
    return after.kind === 'ok' && after.value === 'off' ? ok({ wasRequested: true }) : done;
  }

  clearEventLog(signal?: AbortSignal): Promise<BmcResult<BmcAssertion>> {
    const { clock, readBack } = this.#parts;
    const calls: LogCalls = {
      entries: () => this.#raw(commands.logInfo, logEntries, signal),
      clear: () => this.#act(commands.clearLog, signal),
      isOpen,
    };
    return clearLog(calls, clock, readBack, signal);
  }

  async #raw<T>(
    command: readonly string[],
    read: (bytes: readonly number[]) => T | undefined,
    signal: AbortSignal | undefined,
  ): Promise<BmcResult<T>> {
    const answer = await this.#call(command, signal);
    if (answer.kind !== 'ok') return answer;
    const bytes = rawBytes(answer.value);
    const value = bytes === undefined ? undefined : read(bytes);
    if (value !== undefined) return ok(value);
    const output = answer.value.trim().slice(0, 256);
    return failed('malformed', `no sense in the BMC's answer to ${command.join(' ')}`, output);
  }

  /** One that changes something. */
  #act(command: readonly string[], signal: AbortSignal | undefined): Promise<BmcResult<string>> {
    return this.#call(command, signal, ipmiRest.act);
  }

  #call(
    command: readonly string[],
    signal: AbortSignal | undefined,
    restMs = ipmiRest.read,
    how?: IpmitoolListing,
  ): Promise<BmcResult<string>> {
    const { governor, exec, ipmitool, target } = this.#parts;
    const act = async (): Promise<BmcResult<string>> => {
      const address = await this.#address();
      if (typeof address !== 'string') return address;
      return callIpmitool(exec, ipmitool, { ...target, address }, command, signal, how);
    };
    return governor.run(target.credential, act, { restMs }, signal);
  }

  /** The judged address is the one that is dialled: ipmitool would look a name up again. */
  async #address(): Promise<string | BmcResult<never>> {
    const { names, target } = this.#parts;
    if (readAddress(target.address) !== undefined) return target.address;
    const found = await names?.addressOf(target.address);
    if (found?.kind === 'found') return found.address;
    const why = found?.message ?? 'names are not looked up here';
    return failed('address', 'the BMC address cannot be resolved: correct it', why);
  }
}

/** An optional part of the BMC is missing: no reason to doubt the rest. */
function saysNotThere(result: BmcFailed | BmcTransient): boolean {
  return result.kind === 'failed' && (result.type === 'unsupported' || result.type === 'rejected');
}

/** A BMC may refuse a command that it has carried out, or that a lost one before it has. */
function isOpen(result: BmcFailed | BmcTransient): boolean {
  const isDoubtful =
    result.kind === 'failed' && (result.type === 'rejected' || result.type === 'malformed');
  return isDoubtful || mayHaveHappened(result);
}

function flagText({ flags, device }: BootFlags): string {
  return `flags ${hex(flags)} device ${hex(device)}`;
}

function hex(byte: number): string {
  return `0x${byte.toString(16).padStart(2, '0')}`;
}
