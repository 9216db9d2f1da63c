/**
 * The power button of a software machine, as its BMC presses it: on is a process group of its own,
 * off is a SIGKILL to that group.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import type { BootSource } from './description.ts';

export interface MachineHousing {
  readonly folder: string;
  /** The machine's entry file: `machine/main.ts`, or a bundle of it. */
  readonly program: string;
  /** Called when a process group begins or ends, so that none is left behind. */
  readonly onStart?: (processGroup: number) => void;
  readonly onEnd?: (processGroup: number) => void;
}

export class SoftwareMachine {
  readonly folder: string;
  readonly #housing: MachineHousing;
  #process: ChildProcess | undefined;
  /** The number of its power-ons. */
  starts = 0;

  constructor(housing: MachineHousing) {
    this.folder = housing.folder;
    this.#housing = housing;
  }

  isOn(): boolean {
    return this.#process !== undefined;
  }

  powerOn(source: BootSource): void {
    if (this.#process !== undefined) return;
    const { program, onStart, onEnd } = this.#housing;
    const screen = openSync(join(this.folder, 'machine.log'), 'a');
    const child = spawn(process.execPath, [program, this.folder, source], {
      detached: true,
      stdio: ['ignore', screen, screen],
    });
    closeSync(screen);
    this.starts += 1;
    const { pid } = child;
    if (pid === undefined) throw new Error(`${program} could not be started`);
    this.#process = child;
    onStart?.(pid);
    child.once('exit', () => {
      if (this.#process === child) this.#process = undefined;
      // What the machine had started goes with it.
      killGroup(pid);
      onEnd?.(pid);
    });
  }

  powerOff(): void {
    const pid = this.#process?.pid;
    this.#process = undefined;
    if (pid !== undefined) killGroup(pid);
  }
}

function killGroup(processGroup: number): void {
  try {
    process.kill(-processGroup, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}
