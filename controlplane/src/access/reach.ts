/**
 * How far a caller with a scope reaches: what a request names has to be in scope.
 *
 * Must not: tell whether something out of scope exists; both are refused in the same words.
 */
import type { DescMethod } from '@bufbuild/protobuf';
import { alreadyExists, type BoundService, type CallContext } from '@rackwright/messages';
import { type StateStore, StoreError, storeKey } from '@rackwright/store';
import { answered } from '../records/index.ts';
import { includes, includesRack, type Principal, poolLabel } from './principal.ts';
import { notInScope, outOfScope } from './refusals.ts';
import { hostInScope } from './sight.ts';
import type { Row } from './table.ts';

type Fields = Readonly<Record<string, unknown>>;

/** One call to be judged. */
export interface JudgedCall {
  readonly row: Row;
  readonly request: Fields;
  readonly principal: Principal;
  readonly store: StateStore;
  /** The store as the caller sees it. */
  readonly seen: StateStore;
  /** The method with everything in sight, to look what an update would make. */
  readonly make: (seat: {
    readonly store: StateStore;
    readonly actor: string;
    readonly principal: Principal;
  }) => BoundService;
  readonly method: DescMethod;
  readonly context: CallContext;
}

/** Throws what keeps the caller from it. */
export async function checkReach(asked: JudgedCall): Promise<void> {
  const { row, request, principal, store } = asked;
  const { reach } = row;
  const { scope } = principal;
  switch (reach.kind) {
    case 'host': {
      const name = textAt(request, reach.field);
      const hostId = /^hosts\/([^/]+)/.exec(name)?.[1];
      if (hostId === undefined || (hostId === '-' && !row.changes)) break;
      if ((await found(() => hostInScope(store, scope, hostId))) === undefined) {
        throw notInScope(principal, `hosts/${hostId}`);
      }
      break;
    }
    case 'rack': {
      const name = textAt(request, reach.field);
      if (!includesRack(scope, name)) throw notInScope(principal, name);
      break;
    }
    case 'resource':
      await checkSeen(asked, textAt(request, reach.field));
      break;
    case 'made':
      checkPlace(asked, reach.field, fieldsAt(request, reach.field) ?? {});
      break;
    default:
      break;
  }
  if (!row.changes) return;
  await checkNamed(asked, request, '');
  await checkOutcome(asked);
}

/** A request id that somebody else has used may stand for a batch that is out of sight. */
export async function checkBatch(asked: JudgedCall, batch: Fields): Promise<void> {
  if (asked.request['validateOnly'] === true) return;
  await checkSeen(asked, textAt(batch, 'name'));
}

/** The texts of a request that say what it is about. */
export function askedFor({ reach }: Row, request: Fields): string[] {
  const named = 'field' in reach ? textAt(request, reach.field) : '';
  const about = ['name', 'parent', 'rack'].map((field) => textAt(request, field));
  return [named, ...about, ...(reach.kind === 'batch' ? namesOfBatch(request) : [])];
}

/** To select a host by its name tells nothing of it: who is not in scope is not there. */
function namesOfBatch(request: Fields): string[] {
  const names = fieldsAt(request, 'workflow_batch.spec.hosts')?.['names'];
  return Array.isArray(names) ? names.filter((name) => typeof name === 'string') : [];
}

/**
 * A request id that somebody else has used may stand for what is out of sight: an id is one for the
 * whole fleet, so that it is told that it is taken, and nothing more.
 */
export function checkRepeated({ row, principal }: JudgedCall, answer: Fields): void {
  const { kind } = row.reach;
  if (kind !== 'made' && row.answersHost !== true) return;
  const place = { rack: textAt(answer, 'spec.rack'), pool: textAt(answer, `labels.${poolLabel}`) };
  if (includes(principal.scope, place)) return;
  throw alreadyExists(`${textAt(answer, 'name')} exists already.`);
}

async function checkSeen({ seen, principal }: JudgedCall, name: string): Promise<void> {
  // What is no name is told by the handler.
  if (!/^\w+\/[^/.]+$/.test(name)) return;
  if (!(await exists(seen, name))) throw notInScope(principal, name);
}

/** Where something that is to be made would be. */
function checkPlace({ principal }: JudgedCall, field: string, made: Fields): void {
  const { scope } = principal;
  const rack = textAt(made, 'spec.rack');
  const pool = textAt(made, `labels.${poolLabel}`);
  if (includes(scope, { rack, pool })) return;
  if (scope.racks.length > 0 && !scope.racks.includes(rack)) {
    throw outOfScope(principal, `${field}.spec.rack`, rack === '' ? 'no rack' : rack);
  }
  const named = pool === '' ? 'no pool' : `the pool ${pool}`;
  throw outOfScope(principal, `${field}.labels[${poolLabel}]`, named);
}

/**
 * Racks and credentials anywhere in a change. A credential that no host in scope uses would be
 * sent to a BMC of the caller's choice.
 */
async function checkNamed(asked: JudgedCall, value: unknown, path: string): Promise<void> {
  const { principal, seen } = asked;
  if (typeof value === 'string') {
    const collection = /^(racks|credentials)\/[^/.]+$/.exec(value)?.[1];
    if (collection === undefined) return;
    if (collection === 'racks' && principal.scope.racks.includes(value)) return;
    if (await exists(seen, value)) return;
    throw outOfScope(principal, path, value);
  }
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return;
  for (const [key, inner] of Object.entries(value)) {
    if (key.startsWith('$')) continue;
    await checkNamed(asked, inner, path === '' ? key : `${path}.${key}`);
  }
}

/** A host or line that is changed has to stay in scope: what it would be is asked for first. */
async function checkOutcome(asked: JudgedCall): Promise<void> {
  const { row, request, principal, store, make, method, context } = asked;
  const { reach } = row;
  const field = 'field' in reach ? reach.field : '';
  if (field !== 'host.name' && field !== 'expected_host.name') return;
  const handler = make({ store, actor: principal.actor, principal }).handlers[method.localName];
  const dry = { ...request, validateOnly: true };
  const after = await (handler?.(dry as never, context) as Promise<Fields>);
  checkPlace(asked, field.replace('.name', ''), after);
}

async function exists(store: StateStore, name: string): Promise<boolean> {
  const got = await found(() => store.get(storeKey(...name.split('/'))));
  return got?.kind === 'found';
}

/** What no key can be made of exists nowhere. */
async function found<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await answered((async () => await read())());
  } catch (error) {
    if (error instanceof StoreError && error.code === 'invalidKey') return undefined;
    throw error;
  }
}

function fieldsAt(request: Fields, field: string): Fields | undefined {
  let value: unknown = request;
  for (const name of field.split('.')) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = (value as Fields)[localName(name)];
  }
  return typeof value === 'object' && value !== null ? (value as Fields) : undefined;
}

function textAt(request: Fields, field: string): string {
  const names = field.split('.');
  const last = names.pop() ?? '';
  const holder = names.length === 0 ? request : fieldsAt(request, names.join('.'));
  const value = holder?.[localName(last)];
  return typeof value === 'string' ? value : '';
}

function localName(field: string): string {
  return field.replaceAll(/_([a-z])/g, (_all, letter: string) => letter.toUpperCase());
}
