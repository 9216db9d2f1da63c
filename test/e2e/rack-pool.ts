/**
 * Racks that rows of a table share, one after another: to start one costs more than most rows. Each
 * row enrols a host of its own; a rack on which a row failed is not used again.
 */
import type { MachinePlan } from './machines.ts';
import { Rack, type RackOptions } from './rack.ts';

export class RackPool {
  readonly #options: Omit<RackOptions, 'machines' | 'crash'>;
  readonly #idle: Rack[] = [];

  constructor(options: Omit<RackOptions, 'machines' | 'crash'>) {
    this.#options = options;
  }

  /** Runs a row on a rack that no other row uses meanwhile. */
  async use(row: (rack: Rack) => Promise<void>): Promise<void> {
    const rack = this.#idle.pop() ?? (await Rack.start({ ...this.#options, machines: [] }));
    try {
      await row(rack);
    } catch (error) {
      await rack.stop();
      throw error;
    }
    this.#idle.push(rack);
  }

  /** Stops all racks; no row may run any more. */
  async close(): Promise<void> {
    await Promise.all(this.#idle.splice(0).map((rack) => rack.stop()));
  }
}

/** The same machine as another piece of hardware: `at` says where in the rack, from 0 on. */
export function anotherMachine(plan: MachinePlan, at: number): MachinePlan {
  const two = at.toString(16).padStart(2, '0');
  return {
    ...plan,
    name: `h${at}`,
    bmcAddress: `127.0.1.${at + 1}`,
    mac: `52:54:00:00:01:${two}`,
    uuid: `${plan.uuid.slice(0, -2)}${two}`,
    serial: `SN-${at}`,
    disks: plan.disks.map((disk) => ({ ...disk, serial: `${disk.serial}-${at}` })),
  };
}
