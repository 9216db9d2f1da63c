/** Reads lists of parts one after another, within bounds, and keeps the results. */
import type { BmcResult } from '../driver.ts';
import type { Resource } from './conversation.ts';
import { type JsonObject, objectAt, pathsAt, textAt } from './json.ts';

/** Parts of one kind that are read; each costs a request. */
export const partsMax = 64;

export type ResourceReader = (path: string) => Promise<BmcResult<Resource>>;

export class PartReader {
  complete = true;
  /** Why it went no further; undefined: it did. */
  stopped: Exclude<BmcResult<never>, { kind: 'ok' }> | undefined;
  readonly #read: ResourceReader;
  #requestsLeft: number;

  constructor(read: ResourceReader, requestsMax = Number.POSITIVE_INFINITY) {
    this.#read = read;
    this.#requestsLeft = requestsMax;
  }

  /** The members of a collection; none when there is no collection. */
  async members(path: string | undefined, countMax = partsMax): Promise<readonly JsonObject[]> {
    if (path === undefined) return [];
    const [collection] = await this.all([path], 1);
    if (collection === undefined) return [];
    return this.all(pathsAt(collection, 'Members'), countMax);
  }

  async all(paths: readonly string[], countMax: number): Promise<readonly JsonObject[]> {
    const found: JsonObject[] = [];
    if (paths.length > countMax) this.complete = false;
    for (const path of paths.slice(0, countMax)) {
      if (this.stopped !== undefined) return found;
      if (this.#requestsLeft <= 0) {
        this.complete = false;
        return found;
      }
      this.#requestsLeft -= 1;
      const part = await this.#read(path);
      if (part.kind === 'ok') found.push(part.value.body);
      else if (part.kind === 'transient') this.stopped = part;
      else this.complete = false;
    }
    return found;
  }
}

/** An empty socket or bay is listed as absent. */
export function isThere(body: JsonObject): boolean {
  return textAt(objectAt(body, 'Status'), 'State') !== 'Absent';
}
