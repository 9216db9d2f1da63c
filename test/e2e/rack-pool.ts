/**
 * Racks that rows of a table share, one after another: to start one costs more than most rows. Each
 * row enrols a host of its own; a rack on which a row failed is not used again.
 */
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
