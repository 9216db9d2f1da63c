/**
 * Texts as a caller with a scope may read them: names of what is out of sight are left out, in
 * errors, explanations and records of what others did.
 *
 * Invariants:
 * 1. What the caller has said itself is repeated to it, whether it exists or not.
 * 2. A field that is nothing but a name stays: what it names stands in a record that is in sight.
 * 3. What was given is not changed; a text that differs stands in a copy.
 */
import { ApiFailure, type FieldViolation } from '@rackwright/api';
import { type StateStore, StoreError, storeKey } from '@rackwright/store';
import { answered } from '../records/index.ts';
import { isUnscoped, type Principal } from './principal.ts';
import { notInScope } from './refusals.ts';
import { type HostsInSight, hostsInSight, isInSight } from './sight.ts';

const resourceName =
  /\b(?:hosts|racks|credentials|workflowBatches|abandonedResources|discoveredMachines|expectedHosts|erasureCertificates)\/[A-Za-z0-9-]*[A-Za-z0-9]/g;
const leftOut = 'something out of your scope';
/** Deeper than any answer is. */
const depthMax = 32;

/** Cleans the texts of one call. */
export class Redaction {
  readonly #principal: Principal;
  readonly #store: StateStore;
  readonly #own: ReadonlySet<string>;
  readonly #hosts: HostsInSight;
  readonly #known = new Map<string, boolean>();

  /** `request`: what the caller said. */
  constructor(principal: Principal, store: StateStore, request: unknown) {
    this.#principal = principal;
    this.#store = store;
    this.#own = new Set(namesIn(request));
    this.#hosts = hostsInSight(store, principal.scope);
  }

  /** The error as the caller may see it. */
  async error(error: unknown): Promise<unknown> {
    if (!(error instanceof ApiFailure) || isUnscoped(this.#principal.scope)) return error;
    const said = error.error;
    if (said.kind === 'notFound' && said.reason === 'RESOURCE_NOT_FOUND') {
      return notInScope(this.#principal, said.metadata?.['resource'] ?? 'it');
    }
    const next = { ...said, message: await this.#clean(said.message) };
    if (!('violations' in next)) return new ApiFailure(next, error.cause);
    const violations: FieldViolation[] = [];
    for (const { field, description } of next.violations) {
      violations.push({ field, description: await this.#clean(description) });
    }
    return new ApiFailure({ ...next, violations }, error.cause);
  }

  /** The answer as the caller may see it. */
  async answer<T>(value: T): Promise<T> {
    if (isUnscoped(this.#principal.scope)) return value;
    return (await this.#copy(value, 0)) as T;
  }

  async #copy(value: unknown, depth: number): Promise<unknown> {
    if (typeof value === 'string') return this.#clean(value);
    if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value;
    if (depth >= depthMax) return value;
    if (Array.isArray(value)) {
      const items: unknown[] = [];
      for (const item of value) items.push(await this.#copy(item, depth + 1));
      return items.some((item, index) => item !== value[index]) ? items : value;
    }
    let copied: Record<string, unknown> | undefined;
    for (const [key, inner] of Object.entries(value)) {
      const next = await this.#copy(inner, depth + 1);
      if (next === inner) continue;
      copied ??= { ...value };
      copied[key] = next;
    }
    return copied ?? value;
  }

  async #clean(text: string): Promise<string> {
    const names = new Set(text.match(resourceName) ?? []);
    if (names.has(text)) return text;
    let shown = text;
    for (const name of names) {
      if (!(await this.#sees(name))) shown = shown.replaceAll(name, leftOut);
    }
    return shown;
  }

  async #sees(name: string): Promise<boolean> {
    const known = this.#known.get(name) ?? this.#own.has(name);
    if (this.#known.has(name) || known) return known;
    const seen = await this.#look(name);
    this.#known.set(name, seen);
    return seen;
  }

  async #look(name: string): Promise<boolean> {
    const [collection = '', id = ''] = name.split('/');
    if (collection === 'hosts') return (await this.#hosts()).has(id);
    try {
      const found = await answered(this.#store.get(storeKey(collection, id)));
      return found.kind === 'found' && (await isInSight(this.#principal.scope, found, this.#hosts));
    } catch (error) {
      if (error instanceof StoreError && error.code === 'invalidKey') return false;
      throw error;
    }
  }
}

function namesIn(value: unknown, depth = 0): string[] {
  if (typeof value === 'string') return value.match(resourceName) ?? [];
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return [];
  if (depth >= depthMax) return [];
  return Object.values(value).flatMap((inner) => namesIn(inner, depth + 1));
}
