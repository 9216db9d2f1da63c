/** What the audit stream records, and its form in the store. */
import { create, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type Actor,
  ApiFailure,
  type AuditRecord,
  AuditRecordSchema,
  actors,
  type OperationId,
  type RequestId,
  store as wire,
} from '@rackwright/messages';

export interface AuditEvent {
  readonly kind: 'request' | 'signIn' | 'refusal' | 'secretSent' | 'enrolment' | 'acceptance';
  /** "user:NAME", "token:NAME", "agent:racks/RACK", "system"; empty: unknown. */
  readonly actor: Actor;
  /** The method, as "HostService.CleanHost"; for others a word. */
  readonly action: string;
  /** "hosts/HOST"; empty: no particular resource. */
  readonly resource?: string;
  /** "ok", or the name of a gRPC status. */
  readonly outcome: string;
  /** Why it was refused, or what was done. */
  readonly message?: string;
  readonly requestId?: RequestId;
  readonly operationId?: OperationId;
  readonly peer?: string;
}

/** Takes events; nothing waits for it. */
export interface AuditSink {
  note(event: AuditEvent): void;
}

/** A credential's value was sent for an operation; `to` names the recipient, for people. */
export function credentialSent(
  name: string,
  version: bigint,
  to: string,
  operationId: OperationId,
): AuditEvent {
  return {
    kind: 'secretSent',
    actor: actors.system,
    action: 'sendCredential',
    resource: name,
    outcome: 'ok',
    message: `version ${version} to ${to}`,
    operationId,
  };
}

const messageCharsMax = 1_000;
const nameCharsMax = 256;

/** The event as the stream has it. Texts from elsewhere are truncated, so that it fits. */
export function recordOf(event: AuditEvent, nowMs: number): AuditRecord {
  const { kind, actor, action, resource, outcome, message, requestId, operationId, peer } = event;
  return create(AuditRecordSchema, {
    time: timestampFromMs(nowMs),
    kind,
    actor: cut(actor, nameCharsMax),
    action,
    resource: cut(resource, nameCharsMax),
    outcome,
    message: cut(message, messageCharsMax),
    requestId: cut(requestId, nameCharsMax),
    operationId: cut(operationId, nameCharsMax),
    peer: cut(peer, nameCharsMax),
  });
}

/** The record as it is stored; `begun`: for a call that is about to be carried out. */
export function entryBytes(
  record: AuditRecord,
  { begun = false }: { readonly begun?: boolean } = {},
): Uint8Array {
  const entry = create(wire.AuditEntryRecordSchema, { record, begun });
  return toBinary(wire.AuditEntryRecordSchema, entry);
}

/** The outcome and the message of a failed call. */
export function failureOutcome(error: unknown): { outcome: string; message: string } {
  if (!(error instanceof ApiFailure)) {
    return { outcome: 'INTERNAL', message: 'An internal error; the log says more.' };
  }
  const { kind, message } = error.error;
  return { outcome: kind.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase(), message };
}

function cut(text = '', charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax - 1)}…`;
}
