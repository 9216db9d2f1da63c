/**
 * The store of a simulated control plane and its backups: what people put back when they have lost
 * it, with or without saying so.
 */
import { MemoryDisk } from '@rackwright/store';

/** Backups that are kept, the newest last. */
const backupsMax = 4;

export class StoreBox {
  #disk = new MemoryDisk();
  #backups: MemoryDisk[] = [];
  /** The next control plane that opens it is told that it was restored. */
  #saysRestored = false;
  /** A planted fault: what the disk falls back to whenever a control plane dies. */
  #lost: MemoryDisk | undefined;

  get disk(): MemoryDisk {
    return this.#disk;
  }

  backUp(): void {
    this.#backups = [...this.#backups, this.#disk.copy()].slice(-backupsMax);
  }

  /** Puts the oldest backup back. False when there is none. */
  restore(saysSo: boolean): boolean {
    const [backup] = this.#backups;
    if (backup === undefined) return false;
    this.#disk = backup.copy();
    // Those of the stretch that is lost are thrown away: nothing could tell them from what follows.
    this.#backups = [backup];
    this.#saysRestored = saysSo;
    return true;
  }

  /** Whether whoever opens it now is told that it was restored; only the first one is. */
  opening(): boolean {
    const says = this.#saysRestored;
    this.#saysRestored = false;
    return says;
  }

  /** The planted fault of a store that holds its last seconds in memory only. */
  remember(): void {
    this.#lost = this.#disk.copy();
  }

  controlPlaneDied(): void {
    if (this.#lost !== undefined) this.#disk = this.#lost;
  }
}
