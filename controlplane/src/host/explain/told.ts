/** What explanations are made of. Pure. */
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import type { store } from '@rackwright/messages';
import { idOf } from '../../records/index.ts';

/** What an explanation says; fields that are unset do not apply. */
export interface ExplanationDraft {
  readonly headline: string;
  readonly causes?: readonly { readonly text: string; readonly since?: Timestamp | undefined }[];
  readonly blocker?: string;
  readonly since?: Timestamp | undefined;
  readonly nextAttemptTime?: Timestamp | undefined;
  readonly deadline?: Timestamp | undefined;
  readonly unblock?: readonly string[];
}

/** The host as a command names it; of a record without one, the word to be replaced. */
export function hostId({ host }: store.HostRecord): string {
  return host === undefined ? 'HOST' : idOf(host.name);
}
