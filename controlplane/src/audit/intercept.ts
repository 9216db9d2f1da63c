/**
 * Records calls where handlers are bound, so that no handler can forget to.
 *
 * Invariants:
 * 1. Every call that was let in, of a method that may change something, is recorded with what came
 *    of it; one that only validates is not. Of any other call, that it was not allowed.
 * 2. A call that was let in stands in the stream as begun before it is carried out, and is answered
 *    after its record is kept. What agents enrol is recorded when it is done only.
 * 3. Of callers that nobody knows a bounded number is recorded per minute, and of what each caller
 *    was not allowed, and how many more there were: nobody fills the stream by being refused.
 *
 * Must not: record a value of a request but names, ids, reasons and the paths of a field mask.
 */
import type { DescMethod } from '@bufbuild/protobuf';
import {
  ApiFailure,
  agent,
  type BoundService,
  type CallContext,
  type Guard,
  type RackName,
} from '@rackwright/messages';
import { failureOutcome } from './event.ts';
import type { AuditTrail } from './trail.ts';

type AnyHandler = BoundService['handlers'][string];
/** The name of who calls, as records have it. */
type ActorOf = (context: CallContext) => string;

/** Records calls, on both sides of whatever decides who is let in. */
export interface CallAudit {
  /** The handler of a call that was let in (invariant 2); `actor` is who calls. */
  letIn(method: DescMethod, handler: AnyHandler, actor: string): AnyHandler;
  /** The services, with every call recorded that was not let in; `actorOf` tells who calls. */
  atTheDoor(services: readonly BoundService[], actorOf: ActorOf): BoundService[];
}

/** Calls are recorded in this trail; `changes` tells of which methods (invariant 1). */
export function auditCalls(trail: AuditTrail, changes: (method: DescMethod) => boolean): CallAudit {
  /** Calls that were let in: what comes of them is recorded there. */
  const inside = new WeakSet<CallContext>();
  return {
    letIn: (method, handler, actor) => {
      if (method.methodKind !== 'unary' || !changes(method)) return handler;
      const isEnrolment = method.parent.typeName === agent.EnrolmentService.typeName;
      const own = isEnrolment ? enrolling(handler, trail) : recorded(method, handler, trail, actor);
      return (input, context) => {
        inside.add(context);
        return own(input, context);
      };
    },
    atTheDoor: (services, actorOf) =>
      services.map(({ service, handlers: own }) => {
        const handlers = { ...own };
        for (const method of service.methods) {
          const handler = handlers[method.localName];
          if (handler === undefined) continue;
          handlers[method.localName] = lookedAt(method, handler, { trail, actorOf, inside });
        }
        return { service, handlers };
      }),
  };
}

function recorded(
  method: DescMethod,
  handler: AnyHandler,
  trail: AuditTrail,
  actor: string,
): AnyHandler {
  const action = `${method.parent.name}.${method.name}`;
  return async (input, context) => {
    const request: Fields = input;
    if (request['validateOnly'] === true) return handler(input, context);
    const event = {
      kind: 'request',
      actor,
      action,
      resource: resourceOf(request),
      message: wordsOf(request),
      requestId: textOf(request['requestId']),
      peer: context.peerAddress,
    } as const;
    const id = await trail.begin(event);
    let response: unknown;
    try {
      response = await handler(input, context);
    } catch (error) {
      const kind = isRefusal(error) ? 'refusal' : 'request';
      trail.note({ ...event, kind, ...failureOutcome(error) }, id);
      throw error;
    }
    const resource = event.resource || textOf((response as Fields | undefined)?.['name']);
    await trail.keep({ ...event, resource, outcome: 'ok' }, id);
    if (handingOut.has(action)) trail.note({ ...event, ...handedOut, resource });
    return response;
  };
}

/** Methods whose answer is a secret that is told once. */
const handingOut = new Set(['AccessService.CreateToken', 'RackService.CreateJoinToken']);
const handedOut = { kind: 'secretSent', outcome: 'ok', message: 'told to who asked' } as const;

interface Noting {
  readonly trail: AuditTrail;
  readonly actorOf: ActorOf;
  readonly inside: WeakSet<CallContext>;
}

/** Of what was not let in, that it was not allowed. */
function lookedAt(
  method: DescMethod,
  handler: AnyHandler,
  { trail, actorOf, inside }: Noting,
): AnyHandler {
  const note = (input: unknown, context: CallContext, error: unknown): void => {
    if (!isRefusal(error) || inside.has(context)) return;
    trail.noteRefusal({
      kind: 'refusal',
      actor: actorOf(context),
      action: `${method.parent.name}.${method.name}`,
      resource: isFields(input) ? resourceOf(input) : '',
      peer: context.peerAddress,
      ...failureOutcome(error),
    });
  };
  if (method.methodKind === 'unary') {
    return async (input, context) => {
      try {
        return await handler(input, context);
      } catch (error) {
        note(input, context, error);
        throw error;
      }
    };
  }
  return async function* (input: never, context: CallContext) {
    try {
      yield* handler(input, context) as AsyncIterable<unknown>;
    } catch (error) {
      note(input, context, error);
      throw error;
    }
  };
}

/** Whether somebody who is known wanted what is not theirs, or holds no more what let them in. */
function isRefusal(error: unknown): boolean {
  if (!(error instanceof ApiFailure)) return false;
  const { kind, reason } = error.error;
  return kind === 'permissionDenied' || kind === 'unauthenticated' || reason === outOfSight;
}

/** Of what is out of a caller's scope, as of what does not exist. */
const outOfSight = 'NOT_FOUND_IN_SCOPE';

/** EnrolmentService asks for no token of ours; who calls is known by what is answered. */
function enrolling(handler: AnyHandler, trail: AuditTrail): AnyHandler {
  return async (input, context) => {
    const { joinToken } = input as { readonly joinToken: string };
    const event = {
      kind: 'enrolment',
      action: 'EnrolmentService.IssueCertificate',
      peer: context.peerAddress,
    } as const;
    try {
      const response = (await handler(input, context)) as { readonly rack: RackName };
      const { rack } = response;
      const how = joinToken === '' ? 'renewed by its key' : 'issued for a join token';
      const message = `agent certificate ${how}`;
      await trail.keep({
        ...event,
        actor: `agent:${rack}`,
        resource: rack,
        outcome: 'ok',
        message,
      });
      return response;
    } catch (error) {
      trail.noteStranger({ ...event, actor: '', ...failureOutcome(error) });
      throw error;
    }
  };
}

/** The guard, with everyone whom it does not let in recorded (invariant 3). */
export function auditedGuard(guard: Guard, trail: AuditTrail): Guard {
  return (context) => identified(async () => guard(context), context, trail);
}

/** Who calls, by `identify`; whom it refuses is recorded (invariant 3). */
export async function identified<T>(
  identify: () => Promise<T>,
  context: CallContext,
  trail: AuditTrail,
): Promise<T> {
  try {
    return await identify();
  } catch (error) {
    trail.noteStranger({
      kind: 'signIn',
      actor: '',
      action: methodOf(context),
      peer: context.peerAddress,
      ...failureOutcome(error),
    });
    throw error;
  }
}

type Fields = Readonly<Record<string, unknown>>;

/** "HostService.GetHost" of "/rackwright.v1.HostService/GetHost". */
function methodOf({ method }: CallContext): string {
  const [, service = '', name = ''] = method.split('/');
  return `${service.split('.').at(-1) ?? ''}.${name}`;
}

/** Collections that are not named as their id is. */
const collections: Readonly<Record<string, string>> = {
  batch: 'workflowBatches',
  workflowBatch: 'workflowBatches',
};

/** What a request is about: its name, that of the resource in it, or the one that it makes. */
function resourceOf(request: Fields): string {
  const own = textOf(request['name']);
  if (own !== '') return own;
  for (const [field, value] of Object.entries(request)) {
    const id = /^(\w+)Id$/.exec(field)?.[1];
    if (id === undefined || id === 'request' || typeof value !== 'string' || value === '') continue;
    const parent = textOf(request['parent']);
    const name = `${collections[id] ?? `${id}s`}/${value}`;
    return parent === '' ? name : `${parent}/${name}`;
  }
  for (const value of Object.values(request)) {
    const inner = isFields(value) ? textOf(value['name']) : '';
    if (inner !== '') return inner;
  }
  return textOf(request['parent']) || textOf(request['rack']);
}

/** The reason that was given, and which fields were to change. */
function wordsOf(request: Fields): string {
  const mask = request['updateMask'];
  const paths = isFields(mask) && Array.isArray(mask['paths']) ? mask['paths'] : [];
  const changed = paths.filter((path) => typeof path === 'string').slice(0, pathsMax);
  const words = [
    textOf(request['reason']),
    changed.length > 0 ? `fields ${changed.join(', ')}` : '',
  ];
  return words.filter((text) => text !== '').join('; ');
}

const pathsMax = 32;

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
