/** Reads lists of parts one after another, within bounds, and keeps the results. */
import { type BmcResult, failed } from '../driver.ts';
import type { Resource } from './conversation.ts';
import { type JsonObject, objectAt, textAt } from './json.ts';
import { listedIn } from './pages.ts';

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
    const listed = await listedIn(path, (page) => this.#get(page), countMax);
    if ('kind' in listed) return [];
    if (listed.hasMore) this.complete = false;
    return this.all(listed.paths, countMax);
  }

  async all(paths: readonly string[], countMax: number): Promise<readonly JsonObject[]> {
    const found: JsonObject[] = [];
    if (paths.length > countMax) this.complete = false;
    for (const path of paths.slice(0, countMax)) {
      const part = await this.#get(path);
      if (part.kind === 'ok') found.push(part.value.body);
    }
    return found;
  }

  async #get(path: string): Promise<BmcResult<Resource>> {
    if (this.stopped !== undefined) return this.stopped;
    if (this.#requestsLeft <= 0) {
      this.complete = false;
      return failed('unsupported', 'no more requests are made');
    }
    this.#requestsLeft -= 1;
    const part = await this.#read(path);
    if (part.kind === 'transient') this.stopped = part;
    if (part.kind === 'failed') this.complete = false;
    return part;
  }
}

/** An empty socket or bay is listed as absent. */
export function isThere(body: JsonObject): boolean {
  return textAt(objectAt(body, 'Status'), 'State') !== 'Absent';
}
