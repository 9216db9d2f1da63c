/** Results of the host loop in API form. */
import {
  aborted,
  type FieldViolation,
  hostRefused,
  invalidArgument,
  notFound,
  type store as wire,
} from '@rackwright/messages';
import type { StoreRevision } from '@rackwright/store';
import type { HostRequestOutcome } from './ports.ts';

/** The host after an accepted request. Throws the refusal. */
export function answerOf(
  outcome: HostRequestOutcome,
  name: string,
): { readonly record: wire.HostRecord; readonly revision: StoreRevision } {
  switch (outcome.kind) {
    case 'accepted':
      return outcome;
    case 'notFound':
    case 'removed':
      throw notFound(name);
    case 'refused':
      throw refusalOf(outcome, name);
  }
}

function refusalOf(refused: Extract<HostRequestOutcome, { kind: 'refused' }>, name: string) {
  const { message } = refused;
  switch (refused.code) {
    case 'failedPrecondition':
      return hostRefused(refused.reason, message, name);
    case 'aborted':
      return aborted('ETAG_MISMATCH', message);
    case 'invalidArgument': {
      const violations: readonly FieldViolation[] = refused.fieldViolations ?? [];
      return invalidArgument(
        violations.length > 0 ? violations : [{ field: 'name', description: message }],
      );
    }
  }
}
