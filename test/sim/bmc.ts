/**
 * The simulated BMCs of a rack, reached as production does: through ipmitool. The double that
 * answers is the one that the conformance suite holds to the real pair; here it gets faults.
 */
import { type ImitatedBmc, imitatedBmc, imitatedIpmitool } from '@rackwright/bmc/conformance';
import type { Clock, Exec, ExecRequest, ExecResult } from '@rackwright/platform';
import type { EventHeap, SimProcess } from '@rackwright/sim';
import type { Chance } from './chance.ts';
import type { Manners } from './manners.ts';

export type BootFlags = ImitatedBmc['bootFlags'];

/** What a BMC does to its machine. */
export interface BmcSwitch {
  readonly guid: readonly number[];
  readonly serial: string;
  readonly manners: Manners;
  isOn(): boolean;
  switchPower(on: boolean): void;
  /** A soft off has come; where it is off, as a press of its power button. */
  askToStop(): void;
  bootFlags: BootFlags;
}

export const bmcPassword = 'imitated';

export class SimBmc {
  readonly #heap: EventHeap;
  readonly #imitated: ImitatedBmc;
  readonly #exec: Exec;
  readonly #target: BmcSwitch;
  /** Nothing answers until then. */
  silentUntilMs = 0;
  /** Answers that it is out of sessions until then. */
  busyUntilMs = 0;
  /** Says yes to everything and does nothing until then. */
  lyingUntilMs = 0;
  /** Refuses every password until then: the account is locked. */
  lockedUntilMs = 0;
  /** How much longer than usual each call takes. */
  slowMs = 0;
  /** The address under which it was told to switch last. */
  switchedVia = '';

  constructor(heap: EventHeap, wallStartMs: number, target: BmcSwitch) {
    this.#heap = heap;
    this.#target = target;
    // The BMC lives on when whoever asked dies: its time is the world's.
    const clock: Clock = {
      nowMs: () => wallStartMs + heap.nowMs,
      suspendAwareMs: () => heap.nowMs,
      after: (delayMs, callback) => heap.after(delayMs, callback),
    };
    const fru = ` Product Serial : ${target.serial}\n`;
    const own = { password: bmcPassword, guid: target.guid, fru, powerDelayMs: 1_500 };
    // What a soft off does to the machine is the machine's own.
    const asked = { softOff: target.manners.bmc, stopsAfterMs: undefined };
    this.#imitated = Object.defineProperties(imitatedBmc({ ...own, ...asked }), {
      power: {
        get: () => (target.isOn() ? 'on' : 'off'),
        set: (state: string) => {
          target.switchPower(state === 'on');
        },
      },
      bootFlags: {
        get: () => target.bootFlags,
        set: (flags: BootFlags) => {
          target.bootFlags = flags;
        },
      },
    });
    this.#exec = imitatedIpmitool(clock, this.#imitated);
  }

  /** Restarted: it forgets boot flags and what was wrong with it. */
  reset(target: BmcSwitch, tookMs: number): void {
    this.silentUntilMs = this.#heap.nowMs + tookMs;
    this.busyUntilMs = 0;
    this.lyingUntilMs = 0;
    target.bootFlags = [0, 0];
  }

  /** Ends every fault. */
  repair(): void {
    this.silentUntilMs = 0;
    this.busyUntilMs = 0;
    this.lyingUntilMs = 0;
    this.lockedUntilMs = 0;
    this.slowMs = 0;
  }

  async answer(request: ExecRequest, signal: AbortSignal | undefined): Promise<ExecResult> {
    const { nowMs } = this.#heap;
    if (request.args.join(' ').includes(chassisControl)) this.switchedVia = addressOf(request);
    this.#imitated.silent = nowMs < this.silentUntilMs;
    this.#imitated.lying = nowMs < this.lyingUntilMs;
    if (this.#imitated.silent) return this.#exec.run(request, signal);
    if (nowMs < this.busyUntilMs) return refused('Error: insufficient resources for session');
    if (nowMs < this.lockedUntilMs) return refused('> RAKP 2 message indicates: unauthorized name');
    const result = await this.#exec.run(request, signal);
    const isSoftOff = request.args.join(' ').includes(softOff);
    const isTaken = result.kind === 'exited' && result.code === 0 && !this.#imitated.lying;
    if (isSoftOff && isTaken) this.#target.askToStop();
    return result;
  }
}

/** Chassis Control of IPMI 2.0 §28.3, as ipmitool's arguments. */
const chassisControl = 'raw 0x00 0x02';
const softOff = `${chassisControl} 0x05`;

function addressOf({ args }: ExecRequest): string {
  return args[args.indexOf('-H') + 1] ?? '';
}

function refused(text: string): ExecResult {
  return {
    kind: 'exited',
    code: 1,
    stdout: '',
    stderr: `Loading IANA PEN Registry...\n${text}\n`,
  };
}

export interface BmcNetwork {
  /** Who answers at an address now. */
  at(address: string): SimBmc | undefined;
}

/** `ipmitool` as one process runs it. */
export function simIpmitool(network: BmcNetwork, process: SimProcess, chance: Chance): Exec {
  return {
    run: async (request, signal) => {
      const bmc = network.at(addressOf(request));
      if (bmc === undefined) return refused('Address lookup for this BMC failed');
      await process.answer(chance.around(100 + bmc.slowMs), () => undefined);
      const result = await process.answer(0, () => bmc.answer(request, signal));
      // The command may have been carried out and its answer be lost.
      if (chance.happens(0.01)) return refused('Error: Unable to establish IPMI v2 session');
      return result;
    },
  };
}
