/**
 * Runs before every handler of the operators' port. It checks who calls, and whether the caller's
 * role and scope permit the call (`table.ts`).
 *
 * Invariants:
 * 1. A method without a row is refused to everybody.
 * 2. A caller with a scope reads through a store that holds nothing outside the scope. It changes
 *    only what that store shows, and every resource that a change names has to be in scope too.
 * 3. To such a caller everything out of scope looks absent, also in errors. One exception: an id or
 *    an address that is in use anywhere is refused as in use.
 * 4. A stream ends when the credential of its caller ends.
 */
import type { DescMethod } from '@bufbuild/protobuf';
import {
  type Actor,
  ApiFailure,
  actors,
  type BoundService,
  type CallContext,
  permissionDenied,
} from '@rackwright/messages';
import { abandon, type Clock, Waits } from '@rackwright/platform';
import type { StateStore } from '@rackwright/store';
import type { HostLocations } from './host-locations.ts';
import { isUnscoped, type Principal } from './principal.ts';
import { askedFor, checkBatch, checkReach, checkRepeated } from './reach.ts';
import { Redaction } from './redact.ts';
import { roleTooSmall, scopeTooSmall, tokenEnded } from './refusals.ts';
import { scopedStore } from './scoped-store.ts';
import type { SignIn } from './sign-in.ts';
import { accessTable, type Row } from './table.ts';

type AnyHandler = BoundService['handlers'][string];
type Fields = Readonly<Record<string, unknown>>;

/** What a service is made from, for one call. */
export interface CallDependencies {
  readonly store: StateStore;
  readonly actor: Actor;
  readonly principal: Principal;
  /** The trace parent of the call (W3C Trace Context), for work that it starts; unset: none. */
  readonly traceParent?: string;
}

/** Makes a service for one caller. */
export type Factory = (deps: CallDependencies) => BoundService;

export interface GuardOptions {
  readonly store: StateStore;
  readonly signIn: SignIn;
  readonly locations: HostLocations;
  readonly clock: Pick<Clock, 'after'>;
  /** Runs between the guard and the handler of a permitted call. */
  letIn?(method: DescMethod, handler: AnyHandler, actor: Actor): AnyHandler;
  /** The trace parent for work that a call starts; unset: calls have none. */
  traceOf?(context: CallContext): string | undefined;
}

/** The services behind the guard. */
export function guarded(factories: readonly Factory[], options: GuardOptions): BoundService[] {
  const { store } = options;
  return factories.map((make) => {
    const { service } = make({ store, actor: actors.unknown, principal: nobody });
    const handlers = service.methods.map((method) => {
      const streams = method.methodKind !== 'unary';
      const handler = streams ? streaming(make, method, options) : unary(make, method, options);
      return [method.localName, handler] as const;
    });
    return { service, handlers: Object.fromEntries(handlers) };
  });
}

/** The caller as records name it. */
export function actorOf(signIn: SignIn, context: CallContext): Actor {
  try {
    return signIn.principalOf(context).actor;
  } catch (error) {
    if (error instanceof ApiFailure) return actors.unknown;
    throw error;
  }
}

const nobody: Principal = {
  actor: actors.unknown,
  role: 0,
  scope: { racks: [], pools: [] },
  token: '',
  issuer: '',
  expireMs: undefined,
  proofSha256: '',
};

interface GuardedCall {
  readonly handler: AnyHandler;
  readonly principal: Principal;
  /** Checks the response before it is sent. */
  readonly check?: (answer: unknown) => Promise<void>;
}

async function admit(
  make: Factory,
  method: DescMethod,
  { store, signIn, locations, clock, traceOf }: GuardOptions,
  input: unknown,
  context: CallContext,
): Promise<GuardedCall> {
  const row = rowOf(method);
  if (row.reach.kind === 'open') {
    const deps = { store, actor: actors.unknown, principal: nobody };
    return { handler: handlerOf(make(deps), method), principal: nobody };
  }
  const principal = signIn.principalOf(context);
  const traceParent = traceOf?.(context);
  const whose = {
    ...{ actor: principal.actor, principal },
    ...(traceParent === undefined ? {} : { traceParent }),
  };
  const request: Fields = method.methodKind === 'bidi_streaming' ? {} : (input as Fields);
  const least = Math.max(row.role, row.raised?.(request) ?? row.role) as Row['role'];
  if (principal.role < least) throw roleTooSmall(principal, actionOf(method), least);
  if (isUnscoped(principal.scope)) {
    return { handler: handlerOf(make({ store, ...whose }), method), principal };
  }
  if (row.reach.kind === 'fleet') throw scopeTooSmall(principal, actionOf(method));
  const seen = scopedStore(store, principal.scope, { locations, clock });
  const call = { row, request, principal, store, seen, make, method, context };
  await checkReach(call);
  if (row.reach.kind === 'batch') {
    const hostsOnly = { collections: ['hosts'], locations, clock };
    const within = scopedStore(store, principal.scope, hostsOnly);
    const handler = handlerOf(make({ store: within, ...whose }), method);
    return { handler, principal, check: (answer) => checkBatch(call, answer as Fields) };
  }
  const deps = { store: row.changes ? store : seen, ...whose };
  const check = async (answer: unknown) => checkRepeated(call, answer as Fields);
  return { handler: handlerOf(make(deps), method), principal, check };
}

function unary(make: Factory, method: DescMethod, options: GuardOptions): AnyHandler {
  return async (input, context) => {
    const redaction = redactionOf(options, method, input, context);
    try {
      const { handler, principal, check } = await admit(make, method, options, input, context);
      const own = options.letIn?.(method, handler, principal.actor) ?? handler;
      const answer = await own(input, context);
      await check?.(answer);
      return await redaction.answer(answer);
    } catch (error) {
      throw await redaction.error(error);
    }
  };
}

function streaming(make: Factory, method: DescMethod, options: GuardOptions): AnyHandler {
  return async function* (input: unknown, context: CallContext) {
    const ended = new AbortController();
    let cancel = (): void => undefined;
    try {
      const { handler, principal } = await admit(make, method, options, input, context);
      cancel = options.signIn.onEnd(principal, () => ended.abort());
      const signal = AbortSignal.any([context.signal, ended.signal]);
      const responses = handler(input as never, { ...context, signal }) as AsyncIterable<unknown>;
      for await (const response of untilEnded(responses, ended.signal)) {
        yield await redactionOf(options, method, input, context).answer(response);
      }
    } catch (error) {
      throw await redactionOf(options, method, input, context).error(error);
    } finally {
      cancel();
    }
  };
}

/** Invariant 3. A stream checks again for each response: what is visible changes. */
function redactionOf(
  { store, signIn, locations }: GuardOptions,
  method: DescMethod,
  input: unknown,
  context: CallContext,
) {
  const row = accessTable[pathOf(method)];
  const requests = row === undefined || !isRequest(input) ? [] : askedFor(row, input as Fields);
  return new Redaction(callerOf(signIn, context), store, requests, locations);
}

function isRequest(input: unknown): boolean {
  return typeof input === 'object' && input !== null && !(Symbol.asyncIterator in input);
}

function callerOf(signIn: SignIn, context: CallContext): Principal {
  return actorOf(signIn, context) === actors.unknown ? nobody : signIn.principalOf(context);
}

/** Invariant 4. By then the handler has seen its own signal abort. */
async function* untilEnded(
  responses: AsyncIterable<unknown>,
  ended: AbortSignal,
): AsyncGenerator<unknown, void, undefined> {
  const iterator = responses[Symbol.asyncIterator]();
  const waits = new Waits(ended);
  try {
    for (;;) {
      const next = await waits.on(iterator.next());
      if (next === undefined || ended.aborted) throw tokenEnded();
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    waits.over();
    abandon(iterator);
  }
}

function rowOf(method: DescMethod): Row {
  const row = accessTable[pathOf(method)];
  if (row !== undefined) return row;
  throw permissionDenied('NO_ACCESS_RULE', `${actionOf(method)} is open to nobody yet.`);
}

function handlerOf(bound: BoundService, method: DescMethod): AnyHandler {
  const handler = bound.handlers[method.localName];
  if (handler === undefined) throw new Error(`${method.name} has no handler`);
  return handler;
}

function pathOf(method: DescMethod): string {
  return `${method.parent.typeName}/${method.name}`;
}

function actionOf(method: DescMethod): string {
  return `${method.parent.name}.${method.name}`;
}
