/**
 * The form of values in the file: packed with the dictionary of their time, or unpacked. The
 * dictionaries are in the file too, so that a program with another one reads them.
 */
import type { DatabaseSync } from 'node:sqlite';
import { Packer } from './pack.ts';

/** In `changes.packed`: the value is uncompressed. */
const AS_IT_IS = 0;

export interface StoredValue {
  readonly bytes: Uint8Array;
  /** The number of its dictionary, or `AS_IT_IS`. */
  readonly packed: number;
}

/** A row of `dictionaries`; an alias, because only aliases compare with node:sqlite's answers. */
type Dictionary = {
  readonly id: number;
  readonly value: Uint8Array;
};

export class Values {
  readonly #packers = new Map<number, Packer>();
  readonly #own: number = AS_IT_IS;

  /**
   * `dictionary` is put into the file where it is not there yet; without one nothing is packed.
   * Throws `RangeError` for a dictionary that is too long.
   */
  constructor(database: DatabaseSync, dictionary: Uint8Array | undefined) {
    for (const row of database.prepare('SELECT id, value FROM dictionaries').all()) {
      const { id, value } = row as Dictionary;
      this.#packers.set(id, new Packer(value));
      if (dictionary !== undefined && Buffer.compare(value, dictionary) === 0) this.#own = id;
    }
    if (dictionary === undefined || this.#own !== AS_IT_IS) return;
    const packer = new Packer(dictionary);
    const insert = database.prepare('INSERT INTO dictionaries (value) VALUES (?)');
    this.#own = Number(insert.run(dictionary).lastInsertRowid);
    this.#packers.set(this.#own, packer);
  }

  stored(value: Uint8Array): StoredValue {
    const packed = this.#packers.get(this.#own)?.pack(value);
    if (packed === undefined) return { bytes: value, packed: AS_IT_IS };
    return { bytes: packed, packed: this.#own };
  }

  /** Throws for a damaged value. */
  read({ bytes, packed }: StoredValue): Uint8Array {
    if (packed === AS_IT_IS) return bytes;
    const packer = this.#packers.get(packed);
    if (packer === undefined) throw new Error(`the store has no dictionary ${packed}`);
    return packer.unpack(bytes);
  }
}
