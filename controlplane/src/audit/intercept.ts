/**
 * Records calls where handlers are bound, so that no handler can forget it.
 *
 * Invariants:
 * 1. Every permitted call of a method that may change something is recorded with its outcome,
 *    unless it only validates. Of any other call, only a refusal is recorded.
 * 2. A permitted call has a record of its begin in the stream before it is carried out, and is
 *    answered after its final record is stored. What agents enrol is recorded only afterwards.
 * 3. For unknown callers, and for refusals of each caller, a bounded number is recorded per minute,
 *    with a count of the rest: nobody fills the stream with refused calls.
 *
 * Must not: record a value of a request other than names, ids, reasons and the paths of a field
 * mask.
 */
import type { DescMethod } from '@bufbuild/protobuf';
import {
  type Actor,
  ApiFailure,
  actors,
  agent,
  agentActor,
  type BoundService,
  type CallContext,
  type Guard,
  type RackName,
} from '@rackwright/messages';
import { failureOutcome } from './event.ts';
import type { AuditTrail } from './trail.ts';

type AnyHandler = BoundService['handlers'][string];
/** The caller's name in records. */
type ActorOf = (context: CallContext) => Actor;

/** Records calls before and after the check of the caller's rights. */
export interface CallAudit {
  /** The handler of a permitted call (invariant 2); `actor` is the caller. */
  letIn(method: DescMethod, handler: AnyHandler, actor: Actor): AnyHandler;
  /** The services, with every refused call recorded; `actorOf` names the caller. */
  recordRefusals(services: readonly BoundService[], actorOf: ActorOf): BoundService[];
}

/** Calls are recorded in this trail; `changes` says for which methods (invariant 1). */
export function auditCalls(trail: AuditTrail, changes: (method: DescMethod) => boolean): CallAudit {
  /** Calls whose outcome `letIn` records. */
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
    recordRefusals: (services, actorOf) =>
      services.map(({ service, handlers: own }) => {
        const handlers = { ...own };
        for (const method of service.methods) {
          const handler = handlers[method.localName];
          if (handler === undefined) continue;
          handlers[method.localName] = withRefusalsNoted(method, handler, {
            trail,
            actorOf,
            inside,
          });
        }
        return { service, handlers };
      }),
  };
}

function recorded(
  method: DescMethod,
  handler: AnyHandler,
  trail: AuditTrail,
  actor: Actor,
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
      message: messageOf(request),
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

/** Methods whose response contains a secret that is sent once. */
const handingOut = new Set(['AccessService.CreateToken', 'RackService.CreateJoinToken']);
const handedOut = { kind: 'secretSent', outcome: 'ok', message: 'sent to the caller' } as const;

interface Noting {
  readonly trail: AuditTrail;
  readonly actorOf: ActorOf;
  readonly inside: WeakSet<CallContext>;
}

/** Records refusals of calls that `letIn` does not record. */
function withRefusalsNoted(
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

/** Whether a known caller lacked the right, or its credential has ended. */
function isRefusal(error: unknown): boolean {
  if (!(error instanceof ApiFailure)) return false;
  const { kind, reason } = error.error;
  if (kind === 'permissionDenied' || kind === 'unauthenticated') return true;
  // For resources out of a caller's scope, as for absent ones.
  return reason === 'NOT_FOUND_IN_SCOPE';
}

/** EnrolmentService needs no token of ours; the response names the caller. */
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
        actor: agentActor(rack),
        resource: rack,
        outcome: 'ok',
        message,
      });
      return response;
    } catch (error) {
      trail.noteStranger({ ...event, actor: actors.unknown, ...failureOutcome(error) });
      throw error;
    }
  };
}

/** The guard, with every refused caller recorded (invariant 3). */
export function auditedGuard(guard: Guard, trail: AuditTrail): Guard {
  return (context) => identifyAudited(async () => guard(context), context, trail);
}

/** The caller, by `identify`; a refused one is recorded (invariant 3). */
export async function identifyAudited<T>(
  identify: () => Promise<T>,
  context: CallContext,
  trail: AuditTrail,
): Promise<T> {
  try {
    return await identify();
  } catch (error) {
    trail.noteStranger({
      kind: 'signIn',
      actor: actors.unknown,
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

/** Collections whose name does not follow from the name of the id field. */
const collections: Readonly<Record<string, string>> = {
  batch: 'workflowBatches',
  workflowBatch: 'workflowBatches',
};

/** The subject of a request: its name, that of the resource in it, or the one that it creates. */
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

/** The given reason, and the fields that were to change. */
function messageOf(request: Fields): string {
  const mask = request['updateMask'];
  const paths = isFields(mask) && Array.isArray(mask['paths']) ? mask['paths'] : [];
  const changed = paths.filter((path) => typeof path === 'string').slice(0, pathsMax);
  const parts = [
    textOf(request['reason']),
    changed.length > 0 ? `fields ${changed.join(', ')}` : '',
  ];
  return parts.filter((text) => text !== '').join('; ');
}

const pathsMax = 32;

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
