/**
 * Switches the machine some time after the command.
 *
 * 1. Reads show the machine, never a pending command; with the habit `showsTransitions` they say
 *    that there is one.
 * 2. A newer command replaces a pending one.
 * 3. A boot source for one boot is used up when the machine is switched on.
 */
import type { Cancel, Clock, Random } from '@rackwright/platform';
import type { PowerOnBoot, RedfishBootTarget, RedfishHabits, SwitchedMachine } from './options.ts';

export interface RedfishBootOverride {
  enabled: 'Disabled' | 'Once' | 'Continuous';
  target: RedfishBootTarget;
  mode: RedfishHabits['mode'];
}

const devices: Readonly<Record<RedfishBootTarget, PowerOnBoot['device']>> = {
  None: 'none',
  Pxe: 'pxe',
  Hdd: 'disk',
  UefiHttp: 'uefiHttp',
  Cd: 'cd',
};

export interface PowerParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly habits: RedfishHabits;
  readonly machine: SwitchedMachine;
  readonly onMachineError: (error: unknown) => void;
  /** The machine boots. */
  readonly onBoot: () => void;
}

export class Power {
  readonly #parts: PowerParts;
  readonly boot: RedfishBootOverride;
  #cancel: Cancel | undefined;
  /** What it leads to while it waits for its time. */
  #pending: { readonly goal: 'on' | 'off' } | undefined;
  /** Acts on the machine, one after another. */
  #acting: Promise<void> = Promise.resolve();
  #switchedOffAtMs = Number.NEGATIVE_INFINITY;
  #switches = 0;
  #softOffs = 0;

  constructor(parts: PowerParts) {
    this.#parts = parts;
    this.boot = { enabled: 'Disabled', target: 'None', mode: parts.habits.mode };
  }

  isOn(): boolean {
    return this.#parts.machine.isOn();
  }

  /** DSP0268, Resource `PowerState`. */
  state(): 'On' | 'Off' | 'PoweringOn' | 'PoweringOff' {
    const isOn = this.isOn();
    const goal = this.#parts.habits.showsTransitions ? this.#pending?.goal : undefined;
    if (goal === undefined || (goal === 'on') === isOn) return isOn ? 'On' : 'Off';
    return isOn ? 'PoweringOff' : 'PoweringOn';
  }

  /** How often the machine was ordered to switch. */
  switches(): number {
    return this.#switches;
  }

  /** The number of shutdown requests to its system. */
  softOffs(): number {
    return this.#softOffs;
  }

  /** Asks the system after the BMC's delay; a machine that is off by then is not asked. */
  softOffLater(): void {
    this.#later('off', () => this.#askSystem());
    this.#softOffs += this.isOn() ? 1 : 0;
  }

  /** Whether it still refuses to be switched on again. */
  isResting(): boolean {
    const sinceMs = this.#parts.clock.suspendAwareMs() - this.#switchedOffAtMs;
    return sinceMs < this.#parts.habits.restMs;
  }

  /** Carries `states` out, in this order, after the BMC's delay. */
  switchLater(...states: readonly ('on' | 'off')[]): void {
    this.#later(states.at(-1) ?? 'off', ...states.map((state) => () => this.#switch(state)));
  }

  #later(goal: 'on' | 'off', ...acts: readonly (() => Promise<void>)[]): void {
    const { clock, random, habits } = this.#parts;
    const [leastMs, mostMs] = habits.powerDelayMs;
    this.stop();
    const pending = { goal };
    this.#pending = pending;
    const settle = async (): Promise<void> => {
      if (this.#pending === pending) this.#pending = undefined;
    };
    this.#cancel = clock.after(leastMs + random.fraction() * (mostMs - leastMs), () => {
      for (const act of [...acts, settle]) this.#acting = this.#acting.then(act);
    });
  }

  /** Gives up what waits. */
  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#pending = undefined;
  }

  async #askSystem(): Promise<void> {
    const { machine, onMachineError } = this.#parts;
    if (!machine.isOn()) return;
    try {
      if (machine.softOff === undefined) await machine.powerOff();
      else await machine.softOff();
    } catch (error) {
      onMachineError(error);
    }
  }

  async #switch(state: 'on' | 'off'): Promise<void> {
    const { machine, clock, onMachineError, onBoot } = this.#parts;
    if (machine.isOn() === (state === 'on')) return;
    this.#switches += 1;
    if (state === 'on') onBoot();
    try {
      if (state === 'on') await machine.powerOn(this.#takeBoot());
      else await machine.powerOff();
    } catch (error) {
      onMachineError(error);
    }
    if (state === 'off') this.#switchedOffAtMs = clock.suspendAwareMs();
  }

  #takeBoot(): PowerOnBoot {
    const { enabled, target, mode } = this.boot;
    const device = enabled === 'Disabled' ? 'none' : devices[target];
    if (enabled === 'Once') {
      this.boot.enabled = 'Disabled';
      this.boot.target = 'None';
    }
    return { device, mode: mode === 'Legacy' ? 'legacy' : 'uefi' };
  }
}
