/**
 * From a file to the changes, and applying them.
 *
 * Invariants:
 * 1. Nothing is written before every object has been read, compared and validated by the control
 *    plane: a file with a mistake changes nothing.
 * 2. A change is written only onto the version that it was compared with (etag).
 * 3. Objects are made in the order in which one names another. The first failure ends it; earlier
 *    changes stay, and applying the file again goes on there.
 * 4. A repeated request acts once: its id follows from the new value and the old one.
 */
import { createHash } from 'node:crypto';
import { ApiFailure, type FieldViolation } from '@rackwright/messages';
import type { FileClients } from './clients.ts';
import { differences } from './compare.ts';
import { type ExistingObject, kinds, type WantedResource } from './kinds.ts';
import { type FileObject, positionOfField } from './read.ts';
import type { YamlProblem } from './yaml.ts';

/** Calls at once. */
const widthMax = 8;

export interface PlanStep {
  readonly object: FileObject;
  readonly action: 'create' | 'change' | 'unchanged';
  /** The present resource; undefined when it is to be made. */
  readonly existing?: ExistingObject;
  readonly wanted: WantedResource;
  /** The changes, in lines. */
  readonly lines: readonly string[];
}

/** The problems of one object. */
export interface RefusedObject {
  readonly object: FileObject;
  readonly problems: readonly YamlProblem[];
}

/** Compares the objects with the present resources, in the order in which they will be written. */
export async function planSteps(
  clients: FileClients,
  objects: readonly FileObject[],
  passwords: ReadonlyMap<string, string>,
  setsPasswords: boolean,
): Promise<PlanStep[]> {
  const ordered = kinds.flatMap((kind) => objects.filter((object) => object.kind === kind));
  return inParallel(ordered, async (object) => {
    const { kind, name, value } = object;
    const existing = await ifThere(() => kind.get(clients, name));
    const password = passwords.get(name);
    const isSet = password !== undefined && (existing === undefined || setsPasswords);
    const wanted = { name, value, ...(isSet ? { password } : {}) };
    if (existing === undefined) {
      return { object, action: 'create', wanted, lines: differences(undefined, value) };
    }
    const lines = [...differences(existing.value, value), ...(isSet ? ['password: set anew'] : [])];
    return { object, action: lines.length > 0 ? 'change' : 'unchanged', existing, wanted, lines };
  });
}

/** Lets the control plane check every object that would be written; returns its refusals. */
export async function validate(
  clients: FileClients,
  steps: readonly PlanStep[],
): Promise<readonly RefusedObject[]> {
  const made = new Set(
    steps.filter(({ action }) => action === 'create').map(({ object }) => object.name),
  );
  const refusals = await inParallel(steps, async (step): Promise<RefusedObject | undefined> => {
    const { object } = step;
    if (step.action === 'unchanged') return undefined;
    if (object.kind.name === 'Credential' && step.action === 'create' && !step.wanted.password) {
      const right = 'give it as password: {file: PATH} or {env: VARIABLE}';
      return { object, problems: [problemOf(object, `has no password; ${right}`)] };
    }
    try {
      await write(clients, step, { validateOnly: true, requestId: '' });
      return undefined;
    } catch (error) {
      const problems = problemsOf(error, step, made);
      return problems.length > 0 ? { object, problems } : undefined;
    }
  });
  return refusals.filter((each) => each !== undefined);
}

/** Carries one step out. */
export async function carryOut(clients: FileClients, step: PlanStep): Promise<void> {
  const requestId = await requestIdOf(clients, step);
  await write(clients, step, { validateOnly: false, requestId });
}

function write(
  clients: FileClients,
  { object: { kind }, existing, wanted }: PlanStep,
  options: { validateOnly: boolean; requestId: string },
): Promise<unknown> {
  if (existing === undefined) return kind.create(clients, wanted, options);
  return kind.update(clients, wanted, existing.etag, options);
}

/**
 * Invariant 4. A host remembers requests beyond its removal: the earlier history of its name counts
 * too. Other kinds have no such memory of creations, and are made without an id; a repeated
 * application finds that they exist already.
 */
async function requestIdOf(clients: FileClients, step: PlanStep): Promise<string> {
  const { object, existing, wanted } = step;
  let base = existing?.etag;
  if (base === undefined) {
    if (object.kind.name !== 'Host') return '';
    const past = await ifThere(() =>
      clients.hosts.listHostRevisions({ name: object.name, pageSize: 1 }),
    );
    base = `after ${past?.revisions[0]?.revision ?? 'nothing'}`;
  }
  const content = JSON.stringify([object.kind.name, object.name, base, wanted.value]);
  return `apply-${createHash('sha256').update(content).digest('hex').slice(0, 40)}`;
}

/**
 * Problems in a refusal that will still hold when the file is applied: a problem about an object
 * that the file makes itself is none.
 */
function problemsOf(
  error: unknown,
  step: PlanStep,
  made: ReadonlySet<string>,
): readonly YamlProblem[] {
  const { object } = step;
  if (!(error instanceof ApiFailure)) throw error;
  const { error: failure } = error;
  const named = object.kind.references(step.wanted).filter(({ name }) => made.has(name));
  if ('violations' in failure && failure.violations.length > 0) {
    const stays = (violation: FieldViolation) =>
      named.every(({ field }) => !violation.field.startsWith(field));
    return failure.violations.filter(stays).map(({ field, description }) => ({
      ...positionOfField(object, field),
      message: `${field} ${description}`,
    }));
  }
  switch (failure.kind) {
    case 'notFound':
    case 'failedPrecondition':
      return named.length > 0 ? [] : [problemOf(object, failure.message)];
    case 'unauthenticated':
    case 'permissionDenied':
    case 'unavailable':
    case 'internal':
      throw error;
    default:
      return [problemOf(object, failure.message)];
  }
}

function problemOf({ line, column }: FileObject, message: string): YamlProblem {
  return { line, column, message };
}

/** The requested resource; undefined: it does not exist. */
export async function ifThere<T>(ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof ApiFailure && error.error.kind === 'notFound') return undefined;
    throw error;
  }
}

/** In order, a few at a time. */
export async function inParallel<T, R>(
  items: readonly T[],
  work: (item: T) => Promise<R>,
  width = widthMax,
): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const worker = async () => {
    for (let at = next++; at < items.length; at = next++) results[at] = await work(items[at] as T);
  };
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, worker));
  return results;
}
