/**
 * The one place where `ApiError` meets gRPC: codes, and google.rpc.Status in the trailer
 * `grpc-status-details-bin` (googleRpc.BadRequest, googleRpc.ErrorInfo, googleRpc.RetryInfo).
 *
 * Invariants:
 * 1. `toStatus` and `fromStatus` are inverse for everything that `toStatus` makes.
 * 2. `fromStatus` accepts what any server sends, also without details, and never throws.
 */
import { create, type DescMessage, fromBinary, type Message, toBinary } from '@bufbuild/protobuf';
import type { GenMessage } from '@bufbuild/protobuf/codegenv2';
import { anyPack, anyUnpack } from '@bufbuild/protobuf/wkt';
import { status as Code, type MetadataValue } from '@grpc/grpc-js';
import { type ApiError, type ApiErrorKind, type FieldViolation } from '@rackwright/messages';
import * as googleRpc from '@rackwright/messages/google-rpc';

/** Trailer that carries google.rpc.Status. */
export const statusDetailsKey = 'grpc-status-details-bin';

/** google.rpc.ErrorInfo.domain of everything that we report. */
const errorDomain = 'rackwright';

/** Violations beyond this are cut, so that trailers stay below the peers' limit (8 KiB). */
export const violationsOnWireMax = 32;

/** Characters of one text on the wire; longer ones are cut with a mark. */
const textOnWireCharsMax = 1_000;

const codes = {
  invalidArgument: Code.INVALID_ARGUMENT,
  notFound: Code.NOT_FOUND,
  alreadyExists: Code.ALREADY_EXISTS,
  failedPrecondition: Code.FAILED_PRECONDITION,
  aborted: Code.ABORTED,
  outOfRange: Code.OUT_OF_RANGE,
  unauthenticated: Code.UNAUTHENTICATED,
  permissionDenied: Code.PERMISSION_DENIED,
  resourceExhausted: Code.RESOURCE_EXHAUSTED,
  unavailable: Code.UNAVAILABLE,
  deadlineExceeded: Code.DEADLINE_EXCEEDED,
  cancelled: Code.CANCELLED,
  unimplemented: Code.UNIMPLEMENTED,
  internal: Code.INTERNAL,
} as const satisfies Record<ApiErrorKind, Code>;

const kinds: ReadonlyMap<number, ApiErrorKind> = new Map(
  (Object.keys(codes) as ApiErrorKind[]).map((kind) => [codes[kind], kind]),
);

/** The status of a gRPC call. */
export interface WireStatus {
  readonly code: Code;
  readonly message: string;
  /** google.rpc.Status, for `statusDetailsKey`. */
  readonly details: Uint8Array;
}

/** A detail of google.rpc with its schema. */
export interface ErrorDetail {
  readonly desc: DescMessage;
  readonly value: Message;
}

/** The parts of an error in every protocol: its code, its message and its details. */
export interface ErrorParts {
  readonly code: Code;
  readonly message: string;
  readonly details: readonly ErrorDetail[];
}

/** The gRPC status of an error. */
export function toStatus(error: ApiError): WireStatus {
  const parts = tellError(error);
  const { code, message } = parts;
  const details = parts.details.map(({ desc, value }) => anyPack(desc, value));
  const status = create(googleRpc.StatusSchema, { code, message, details });
  return { code, message, details: toBinary(googleRpc.StatusSchema, status) };
}

/** Its code, message and details, each within the bound for the wire. */
export function tellError(error: ApiError): ErrorParts {
  const message = cut(error.message);
  const info = create(googleRpc.ErrorInfoSchema, {
    reason: error.reason,
    domain: errorDomain,
    metadata: { ...error.metadata, ...(error.kind === 'internal' && reference(error.reference)) },
  });
  const details: ErrorDetail[] = [{ desc: googleRpc.ErrorInfoSchema, value: info }];
  if ('violations' in error && error.violations.length > 0) {
    const fieldViolations = error.violations.slice(0, violationsOnWireMax).map((violation) => ({
      field: cut(violation.field),
      description: cut(violation.description),
    }));
    details.push({
      desc: googleRpc.BadRequestSchema,
      value: create(googleRpc.BadRequestSchema, { fieldViolations }),
    });
  }
  if (error.kind === 'unavailable' && error.retryAfterMs !== undefined) {
    details.push({ desc: googleRpc.RetryInfoSchema, value: retryInfo(error.retryAfterMs) });
  }
  return { code: codes[error.kind], message, details };
}

/** The error for the gRPC status of a peer (invariant 2). */
export function fromStatus(
  code: number,
  message: string,
  trailer: MetadataValue | undefined,
): ApiError {
  const details = typeof trailer === 'object' ? readDetails(trailer) : {};
  const base = {
    message,
    reason: details.info?.reason ?? '',
    metadata: details.info?.metadata ?? {},
  };
  const kind = kinds.get(code) ?? 'internal';
  switch (kind) {
    case 'invalidArgument':
    case 'alreadyExists':
      return { ...base, kind, violations: violationsOf(details.badRequest) };
    case 'unavailable': {
      const retryAfterMs = milliseconds(details.retry);
      return retryAfterMs === undefined ? { ...base, kind } : { ...base, kind, retryAfterMs };
    }
    case 'internal':
      return { ...base, kind, reference: base.metadata['reference'] ?? '' };
    default:
      return { ...base, kind };
  }
}

interface Details {
  info?: googleRpc.ErrorInfo | undefined;
  badRequest?: googleRpc.BadRequest | undefined;
  retry?: googleRpc.RetryInfo | undefined;
}

function readDetails(trailer: Uint8Array): Details {
  const found: Details = {};
  try {
    for (const any of fromBinary(googleRpc.StatusSchema, trailer).details) {
      found.info ??= unpack(any, googleRpc.ErrorInfoSchema);
      found.badRequest ??= unpack(any, googleRpc.BadRequestSchema);
      found.retry ??= unpack(any, googleRpc.RetryInfoSchema);
    }
  } catch {
    // The peer's bytes are no google.rpc.Status; code and message still say enough.
  }
  return found;
}

function unpack<M extends Message>(
  any: Parameters<typeof anyUnpack>[0],
  schema: GenMessage<M>,
): M | undefined {
  return anyUnpack(any, schema);
}

function violationsOf(badRequest: googleRpc.BadRequest | undefined): FieldViolation[] {
  return (badRequest?.fieldViolations ?? []).map(({ field, description }) => ({
    field,
    description,
  }));
}

function reference(value: string): Record<string, string> {
  return { reference: value };
}

function retryInfo(delayMs: number): googleRpc.RetryInfo {
  return create(googleRpc.RetryInfoSchema, {
    retryDelay: {
      seconds: BigInt(Math.floor(delayMs / 1_000)),
      nanos: Math.floor(delayMs % 1_000) * 1_000_000,
    },
  });
}

function milliseconds(retry: googleRpc.RetryInfo | undefined): number | undefined {
  const delay = retry?.retryDelay;
  return delay && Number(delay.seconds) * 1_000 + Math.round(delay.nanos / 1_000_000);
}

/** Bounded, and free of lone surrogates, which grpc-js cannot percent-encode. */
function cut(text: string): string {
  const bounded =
    text.length <= textOnWireCharsMax ? text : `${text.slice(0, textOnWireCharsMax)}… (cut)`;
  return bounded.toWellFormed();
}
