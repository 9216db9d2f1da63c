import type { Clock, Exec, ExecRequest, ExecResult } from '@rackwright/platform';
import type { PowerState } from '../driver.ts';

/** A BMC as the imitation knows it; change it to make it misbehave. */
export interface ImitatedBmc {
  password: string;
  guid: readonly number[];
  manufacturerId: number;
  fru: string | undefined;
  power: PowerState;
  bootFlags: readonly [flags: number, device: number];
  switches: number;
  /** How often the system was asked to shut down; a soft off of a machine that is off is none. */
  softOffs: number;
  /** The system stops so long after a soft off; undefined: it ignores it. */
  stopsAfterMs: number | undefined;
  /** The BMC's reaction to a soft off: accepts it, does not know it, or refuses it. */
  softOff: 'taken' | 'unknown' | 'refused';
  /** Entries of its event log; undefined: it has none. */
  logEntries: number | undefined;
  /** What `sdr list full` prints. */
  sensors: string;
  /** Bits of faults in bytes 1 and 3 of Get Chassis Status. */
  faults: readonly [number, number];
  lamp: boolean;
  /** Nothing answers. */
  silent: boolean;
  /** Accepts every set and carries out none. */
  lying: boolean;
  /** A power change shows this much later. */
  powerDelayMs: number;
}

export function imitatedBmc(changes: Partial<ImitatedBmc> = {}): ImitatedBmc {
  return {
    password: 'imitated',
    guid: Array.from({ length: 16 }, (_, index) => index * 17),
    manufacturerId: 0x2a7c,
    fru: undefined,
    power: 'off',
    bootFlags: [0, 0],
    switches: 0,
    softOffs: 0,
    stopsAfterMs: 0,
    softOff: 'taken',
    logEntries: 0,
    sensors: '',
    faults: [0, 0],
    lamp: false,
    silent: false,
    lying: false,
    powerDelayMs: 0,
    ...changes,
  };
}

/** How long ipmitool with our arguments waits for a silent BMC (measured: 10.05 s). */
const silenceMs = 10_050;

/**
 * An Exec that answers the ipmitool commands that IpmiDriver uses, with ipmitool 1.8.19's words,
 * for one BMC in memory. The conformance suite compares it with the real pair.
 */
export function imitatedIpmitool(clock: Clock, bmc: ImitatedBmc): Exec {
  return {
    async run(request: ExecRequest, signal?: AbortSignal): Promise<ExecResult> {
      if (signal?.aborted === true) return { kind: 'notStarted', message: 'aborted' };
      if (bmc.silent) {
        await silence(clock, signal);
        const error = 'Error issuing Get Channel Authentication Capabilities request';
        return exited(1, '', `Get Auth Capabilities error\n${error}\n${noSession}`);
      }
      if (request.stdin !== bmc.password) {
        return exited(1, '', `> RAKP 2 HMAC is invalid\n${noSession}`);
      }
      const at = request.args.indexOf('/dev/stdin');
      return answer(clock, bmc, request.args.slice(at + 1));
    },
  };
}

/** A caller that gives up kills the program. */
function silence(clock: Clock, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    clock.after(silenceMs, resolve);
    signal?.addEventListener('abort', () => resolve(), { once: true });
  });
}

const noSession = 'Error: Unable to establish IPMI v2 / RMCP+ session\n';

function answer(clock: Clock, bmc: ImitatedBmc, command: readonly string[]): ExecResult {
  const [verb, ...rest] = command;
  if (verb !== 'raw') return answerNamed(bmc, command);
  return answerRaw(clock, bmc, rest);
}

/** Commands that ipmitool knows by a name. */
function answerNamed(bmc: ImitatedBmc, [verb, ...rest]: readonly string[]): ExecResult {
  if (verb === 'fru') {
    if (bmc.fru !== undefined) return exited(0, bmc.fru, '');
    return exited(1, '', ' Device not present (Invalid data field in request)\n');
  }
  if (verb === 'sdr') return exited(0, bmc.sensors, '');
  if (verb === 'chassis') {
    if (!bmc.lying) bmc.lamp = rest[1] !== '0';
    return exited(0, '', '');
  }
  if (verb === 'sel') return rest[0] === 'clear' ? clearLog(bmc) : listLog(bmc, Number(rest[2]));
  return unknownCommand;
}

function answerRaw(clock: Clock, bmc: ImitatedBmc, rest: readonly string[]): ExecResult {
  const [netFn, code, ...argument] = rest.map((word) => Number.parseInt(word, 16));
  switch (`${netFn} ${code}`) {
    case '6 1':
      return bytes([0, 3, 9, 8, 2, 0x9f, ...threeBytes(bmc.manufacturerId), 2, 15, 0, 0, 0, 0]);
    case '6 55':
      return bytes(bmc.guid);
    case '0 1':
      return bytes([(bmc.power === 'on' ? 1 : 0) | bmc.faults[0], 0, bmc.faults[1]]);
    case '6 2':
      if (!bmc.lying) restart(clock, bmc);
      return bytes([]);
    case '0 2':
      if (argument[0] === 5) return askSystem(clock, bmc);
      switchPower(clock, bmc, argument[0] === 1 ? 'on' : 'off');
      return bytes([]);
    case '0 8':
      if (!bmc.lying) bmc.bootFlags = [argument[1] ?? 0, argument[2] ?? 0];
      return bytes([]);
    case '0 9':
      return bytes([1, 5, ...bmc.bootFlags, 0, 0, 0]);
    case '10 64':
      if (bmc.logEntries !== undefined) {
        return bytes([0x51, bmc.logEntries & 255, bmc.logEntries >> 8, ...Array(11).fill(0)]);
      }
      return unknownCommand;
    default:
      return unknownCommand;
  }
}

const unknownCommand = exited(1, '', 'Unable to send RAW command (rsp=0xc1): Invalid command\n');

/** Chassis Control, option 5 (§28.3). */
function askSystem(clock: Clock, bmc: ImitatedBmc): ExecResult {
  if (bmc.softOff === 'unknown') return unknownCommand;
  if (bmc.softOff === 'refused') {
    return exited(1, '', 'Unable to send RAW command (rsp=0xcc): Invalid data field in request\n');
  }
  if (bmc.lying || bmc.power === 'off') return bytes([]);
  bmc.softOffs += 1;
  if (bmc.stopsAfterMs === undefined) return bytes([]);
  clock.after(bmc.stopsAfterMs, () => {
    bmc.power = 'off';
  });
  return bytes([]);
}

/** Silent for a while, then as before. */
function restart(clock: Clock, bmc: ImitatedBmc): void {
  clock.after(1_000, () => {
    bmc.silent = true;
    clock.after(90_000, () => {
      bmc.silent = false;
    });
  });
}

function listLog(bmc: ImitatedBmc, last: number): ExecResult {
  const count = bmc.logEntries ?? 0;
  const ids = Array.from({ length: Math.min(last, count) }, (_, at) => count - last + at + 1);
  const event = 'Temperature #0x30,Upper Critical going high,Asserted';
  return exited(
    0,
    ids.map((id) => `${id.toString(16)},11/27/2026,21:00:00,${event}\n`).join(''),
    '',
  );
}

/** ipmitool reserves, initiates and does not wait. */
function clearLog(bmc: ImitatedBmc): ExecResult {
  if (bmc.logEntries === undefined) return exited(1, '', 'SEL reservation failed\n');
  if (!bmc.lying) bmc.logEntries = 1;
  return exited(0, 'Clearing SEL.  Please allow a few seconds to erase.\n', '');
}

function switchPower(clock: Clock, bmc: ImitatedBmc, state: PowerState): void {
  if (bmc.lying) return;
  bmc.switches += 1;
  if (bmc.powerDelayMs === 0) bmc.power = state;
  else
    clock.after(bmc.powerDelayMs, () => {
      bmc.power = state;
    });
}

function threeBytes(number: number): readonly number[] {
  return [number & 255, (number >> 8) & 255, (number >> 16) & 255];
}

function bytes(values: readonly number[]): ExecResult {
  return exited(0, `${values.map((value) => ` ${hex(value)}`).join('')}\n`, '');
}

function hex(value: number): string {
  return value.toString(16).padStart(2, '0');
}

function exited(code: number, stdout: string, stderr: string): ExecResult {
  return { kind: 'exited', code, stdout, stderr: `Loading IANA PEN Registry...\n${stderr}` };
}
