/**
 * How far a caller with a scope reaches: every resource that a request names has to be in scope.
 *
 * Must not: reveal whether something out of scope exists; both cases are refused in the same words.
 */
import type { DescMethod } from '@bufbuild/protobuf';
import {
  type Actor,
  alreadyExists,
  type BoundService,
  type CallContext,
} from '@rackwright/messages';
import { type StateStore, StoreError, storeKey } from '@rackwright/store';
import { orUnavailable } from '../records/index.ts';
import { includesRack, isInScope, type Principal, poolLabel } from './principal.ts';
import { notInScope, outOfScope } from './refusals.ts';
import type { Row } from './table.ts';
import { hostInScope } from './visibility.ts';

type Fields = Readonly<Record<string, unknown>>;

/** One call to check. */
export interface JudgedCall {
  readonly row: Row;
  readonly request: Fields;
  readonly principal: Principal;
  readonly store: StateStore;
  /** The store as the caller sees it. */
  readonly seen: StateStore;
  /** Makes the service with everything visible, to compute the result of an update. */
  readonly make: (deps: {
    readonly store: StateStore;
    readonly actor: Actor;
    readonly principal: Principal;
  }) => BoundService;
  readonly method: DescMethod;
  readonly context: CallContext;
}

/** Throws why the caller may not make the call. */
export async function checkReach(call: JudgedCall): Promise<void> {
  const { row, request, principal, store } = call;
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
      await checkSeen(call, textAt(request, reach.field));
      break;
    case 'made':
      checkLocation(call, reach.field, fieldsAt(request, reach.field) ?? {});
      break;
    default:
      break;
  }
  if (!row.changes) return;
  await checkNamed(call, request, '');
  await checkOutcome(call);
}

/** A request id of another caller may belong to a batch that is hidden. */
export async function checkBatch(call: JudgedCall, batch: Fields): Promise<void> {
  if (call.request['validateOnly'] === true) return;
  await checkSeen(call, textAt(batch, 'name'));
}

/** The texts of a request that name its subject. */
export function askedFor({ reach }: Row, request: Fields): string[] {
  const named = 'field' in reach ? textAt(request, reach.field) : '';
  const about = ['name', 'parent', 'rack'].map((field) => textAt(request, field));
  return [named, ...about, ...(reach.kind === 'batch' ? namesOfBatch(request) : [])];
}

/** To select a host by its name reveals nothing: a host out of scope looks absent. */
function namesOfBatch(request: Fields): string[] {
  const names = fieldsAt(request, 'workflow_batch.spec.hosts')?.['names'];
  return Array.isArray(names) ? names.filter((name) => typeof name === 'string') : [];
}

/**
 * A request id of another caller may belong to something hidden. Request ids are unique in
 * the whole fleet, so the refusal says only that the id is in use.
 */
export function checkRepeated({ row, principal }: JudgedCall, answer: Fields): void {
  const { kind } = row.reach;
  if (kind !== 'made' && row.answersHost !== true) return;
  const location = {
    rack: textAt(answer, 'spec.rack'),
    pool: textAt(answer, `labels.${poolLabel}`),
  };
  if (isInScope(principal.scope, location)) return;
  throw alreadyExists(`${textAt(answer, 'name')} exists already.`);
}

async function checkSeen({ seen, principal }: JudgedCall, name: string): Promise<void> {
  // The handler refuses a malformed name.
  if (!/^\w+\/[^/.]+$/.test(name)) return;
  if (!(await exists(seen, name))) throw notInScope(principal, name);
}

/** Checks the place of a resource that is to be created. */
function checkLocation({ principal }: JudgedCall, field: string, made: Fields): void {
  const { scope } = principal;
  const rack = textAt(made, 'spec.rack');
  const pool = textAt(made, `labels.${poolLabel}`);
  if (isInScope(scope, { rack, pool })) return;
  if (scope.racks.length > 0 && !scope.racks.includes(rack)) {
    throw outOfScope(principal, `${field}.spec.rack`, rack === '' ? 'no rack' : rack);
  }
  const named = pool === '' ? 'no pool' : `the pool ${pool}`;
  throw outOfScope(principal, `${field}.labels[${poolLabel}]`, named);
}

/**
 * Checks racks and credentials anywhere in a change. Otherwise a caller could send a credential
 * that no host in scope uses to a BMC of its choice.
 */
async function checkNamed(call: JudgedCall, value: unknown, path: string): Promise<void> {
  const { principal, seen } = call;
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
    await checkNamed(call, inner, path === '' ? key : `${path}.${key}`);
  }
}

/** A changed host or line has to stay in scope: the result of the change is computed first. */
async function checkOutcome(call: JudgedCall): Promise<void> {
  const { row, request, principal, store, make, method, context } = call;
  const { reach } = row;
  const field = 'field' in reach ? reach.field : '';
  if (field !== 'host.name' && field !== 'expected_host.name') return;
  const handler = make({ store, actor: principal.actor, principal }).handlers[method.localName];
  const dry = { ...request, validateOnly: true };
  const after = await (handler?.(dry as never, context) as Promise<Fields>);
  checkLocation(call, field.replace('.name', ''), after);
}

async function exists(store: StateStore, name: string): Promise<boolean> {
  const got = await found(() => store.get(storeKey(...name.split('/'))));
  return got?.kind === 'found';
}

/** A name that makes no valid key exists nowhere. */
async function found<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await orUnavailable((async () => await read())());
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
