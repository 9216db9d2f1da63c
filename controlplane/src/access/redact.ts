/**
 * Texts as a caller with a scope may read them. Hidden names are removed from errors,
 * explanations and records of what others did.
 *
 * Invariants:
 * 1. The resource that the caller asks for by name is repeated to it, whether it exists or not.
 *    Other names in the request do not prove that the caller knows them: a guess is not confirmed.
 * 2. A field of a response that is nothing but a name stays: the record that contains it is
 *    visible. In an error it does not stay.
 * 3. The input is not changed; the result is a copy where a text differs.
 */
import { ApiFailure, type FieldViolation } from '@rackwright/messages';
import type { StateStore } from '@rackwright/store';
import type { HostLocations } from './host-locations.ts';
import { isUnscoped, type Principal } from './principal.ts';
import { notInScope } from './refusals.ts';
import { getOrNone, isVisible, type VisibleHosts, visibleHosts } from './visibility.ts';

const resourceName =
  /\b(?:hosts|racks|credentials|workflowBatches|abandonedResources|discoveredMachines|expectedHosts|erasureCertificates)\/[A-Za-z0-9-]*[A-Za-z0-9]/g;
const wholeName = new RegExp(`^(?:${resourceName.source})$`);
const leftOut = 'something out of your scope';
/** Reasons of refusals that contain only the caller's own words. */
const scopeReasons: ReadonlySet<string> = new Set(['OUT_OF_SCOPE', 'NOT_FOUND_IN_SCOPE']);
/** Deeper than any response is. */
const depthMax = 32;

/** Cleans the texts of one call. */
export class Redaction {
  readonly #principal: Principal;
  readonly #store: StateStore;
  readonly #own: ReadonlySet<string>;
  readonly #hosts: VisibleHosts;
  readonly #known = new Map<string, boolean>();

  /** `asked`: the subject of the request, from the fields that its row names. */
  constructor(
    principal: Principal,
    store: StateStore,
    requests: readonly string[],
    locations: HostLocations,
  ) {
    this.#principal = principal;
    this.#store = store;
    this.#own = new Set(requests.flatMap((text) => text.match(resourceName) ?? []));
    this.#hosts = visibleHosts(store, principal.scope, locations);
  }

  /** The error as the caller may see it. */
  async error(error: unknown): Promise<unknown> {
    if (!(error instanceof ApiFailure) || isUnscoped(this.#principal.scope)) return error;
    const refusal = error.error;
    // The guard's own words contain only parts of the caller's request.
    if (scopeReasons.has(refusal.reason)) return error;
    if (refusal.kind === 'notFound' && refusal.reason === 'RESOURCE_NOT_FOUND') {
      const name = refusal.metadata?.['resource'] ?? '';
      const [own] = this.#own;
      return notInScope(this.#principal, this.#own.has(name) ? name : (own ?? 'it'));
    }
    const metadata: Record<string, string> = {};
    for (const [key, value] of Object.entries(refusal.metadata ?? {})) {
      metadata[key] = await this.#without(value);
    }
    const message = await this.#without(refusal.message);
    const next = { ...refusal, message, ...(refusal.metadata === undefined ? {} : { metadata }) };
    if (!('violations' in next)) return new ApiFailure(next, error.cause);
    const violations: FieldViolation[] = [];
    for (const { field, description } of next.violations) {
      violations.push({ field, description: await this.#without(description) });
    }
    return new ApiFailure({ ...next, violations }, error.cause);
  }

  /** The response as the caller may see it. */
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

  /** Invariant 2. */
  async #clean(text: string): Promise<string> {
    return wholeName.test(text) ? text : this.#without(text);
  }

  async #without(text: string): Promise<string> {
    let shown = text;
    for (const name of new Set(text.match(resourceName) ?? [])) {
      if (!(await this.#sees(name))) shown = shown.replaceAll(name, leftOut);
    }
    return shown;
  }

  async #sees(name: string): Promise<boolean> {
    const known = this.#known.get(name) ?? this.#own.has(name);
    if (this.#known.has(name) || known) return known;
    const seen = await this.#isVisible(name);
    this.#known.set(name, seen);
    return seen;
  }

  async #isVisible(name: string): Promise<boolean> {
    const [collection = '', id = ''] = name.split('/');
    if (collection === 'hosts') return (await this.#hosts.get(id)) !== undefined;
    const found = await getOrNone(this.#store, collection, id);
    return found !== undefined && (await isVisible(this.#principal.scope, found, this.#hosts));
  }
}
