/** Counts calls as they end: each once, a stream when it is over. */
import {
  type ApiErrorKind,
  ApiFailure,
  type BoundService,
  type CallContext,
} from '@rackwright/messages';

type AnyHandler = BoundService['handlers'][string];

/** gRPC code names by the API's error kinds. */
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

/** The end of a call: the name of its gRPC code. */
export type CallCode = 'OK' | (typeof codes)[ApiErrorKind];
export const callCodes: readonly CallCode[] = ['OK', ...Object.values(codes)];

/**
 * Called with an ended call: "HostService.GetHost", and the name of its gRPC code. "CANCELLED": its
 * caller went, its deadline passed, or the server stopped, whatever the handler's own result.
 */
export type CallMeter = (method: string, code: CallCode) => void;

/** The same services; every call is counted. Only methods of their descriptors appear as names. */
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
    // When a caller stops reading, neither of the following assignments runs.
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

/** The server reports any error but an `ApiFailure` as an internal error. */
function codeOf(error: unknown): CallCode {
  return codes[error instanceof ApiFailure ? error.error.kind : 'internal'];
}
