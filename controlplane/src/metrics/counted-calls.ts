/** Calls as they end: each is counted once, a stream when it is over. */
import {
  type ApiErrorKind,
  ApiFailure,
  type BoundService,
  type CallContext,
} from '@rackwright/messages';

type AnyHandler = BoundService['handlers'][string];

/** The names of gRPC's codes, by what the API says of an error. */
const codes = {
  invalidArgument: 'INVALID_ARGUMENT',
  notFound: 'NOT_FOUND',
  alreadyExists: 'ALREADY_EXISTS',
  failedPrecondition: 'FAILED_PRECONDITION',
  aborted: 'ABORTED',
  outOfRange: 'OUT_OF_RANGE',
  unauthenticated: 'UNAUTHENTICATED',
  permissionDenied: 'PERMISSION_DENIED',
  resourceExhausted: 'RESOURCE_EXHAUSTED',
  unavailable: 'UNAVAILABLE',
  deadlineExceeded: 'DEADLINE_EXCEEDED',
  cancelled: 'CANCELLED',
  unimplemented: 'UNIMPLEMENTED',
  internal: 'INTERNAL',
} as const satisfies Record<ApiErrorKind, string>;

/** What a call ends with: the name of its gRPC code. */
export type CallCode = 'OK' | (typeof codes)[ApiErrorKind];
export const callCodes: readonly CallCode[] = ['OK', ...Object.values(codes)];

/**
 * Told of a call that has ended: "HostService.GetHost", and the name of its gRPC code. "CANCELLED":
 * its caller went, its deadline passed, or the server stopped, whatever its handler made of that.
 */
export type CallMeter = (method: string, code: CallCode) => void;

/** The same services; every call is counted. Only methods of their descriptors are ever named. */
export function countCalls(services: readonly BoundService[], count: CallMeter): BoundService[] {
  return services.map(({ service, handlers }) => ({
    service,
    handlers: Object.fromEntries(
      service.methods.flatMap(({ localName, name, methodKind }) => {
        const handler = handlers[localName];
        if (handler === undefined) return [];
        const method = `${service.name}.${name}`;
        const counted = methodKind === 'unary' ? countedCall : countedStream;
        return [[localName, counted(handler, (code) => count(method, code))]];
      }),
    ),
  }));
}

function countedCall(handler: AnyHandler, count: (code: CallCode) => void): AnyHandler {
  return async (input, context) => {
    let code: CallCode = 'OK';
    try {
      return await handler(input, context);
    } catch (error) {
      code = codeOf(error);
      throw error;
    } finally {
      count(context.signal.aborted ? 'CANCELLED' : code);
    }
  };
}

function countedStream(handler: AnyHandler, count: (code: CallCode) => void): AnyHandler {
  return async function* (input: never, context: CallContext) {
    // Who stops reading comes past both of what follows.
    let code: CallCode = 'CANCELLED';
    try {
      yield* handler(input, context) as AsyncIterable<unknown>;
      code = 'OK';
    } catch (error) {
      code = codeOf(error);
      throw error;
    } finally {
      count(context.signal.aborted ? 'CANCELLED' : code);
    }
  };
}

/** What the server tells of anything but an `ApiFailure` is an internal error. */
function codeOf(error: unknown): CallCode {
  return codes[error instanceof ApiFailure ? error.error.kind : 'internal'];
}
