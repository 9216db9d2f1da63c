/** The result of a pass over one host, and the part that its caller gets. */
import type { HostId, store } from '@rackwright/messages';
import { hasApplied } from '../../records/index.ts';
import type { HostEvent, Refusal, ReportVerdict } from './types.ts';

export type RequestOutcome =
  | { readonly kind: 'accepted'; readonly record: store.HostRecord; readonly revision: number }
  | { readonly kind: 'removed' }
  | ({ readonly kind: 'refused' } & Refusal)
  | { readonly kind: 'notFound' };

/** The result of a pass over one host. */
export type PassResult =
  | {
      readonly kind: 'kept';
      readonly record: store.HostRecord;
      readonly revision: number;
      readonly verdict?: ReportVerdict;
    }
  | { readonly kind: 'removed' }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  | { readonly kind: 'notFound' };

/** The outcome of a request. */
export function requestOutcome(result: PassResult): RequestOutcome {
  switch (result.kind) {
    case 'kept':
      return { kind: 'accepted', record: result.record, revision: result.revision };
    case 'refused':
      return { kind: 'refused', ...result.refusal };
    default:
      return result;
  }
}

/** A repeated request gets the same response, also with its old etag. */
export function isRepeated(record: store.HostRecord, event: HostEvent): boolean {
  return event.kind === 'request' && hasApplied(record, event.by.requestId);
}

/** The host has changed since its reader read it. */
export function staleEtag(hostId: HostId): PassResult {
  const message = `hosts/${hostId} has changed since the etag was read; read it again`;
  return { kind: 'refused', refusal: { code: 'aborted', message } };
}
