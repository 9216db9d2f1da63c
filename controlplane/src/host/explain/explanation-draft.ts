/** The parts of an explanation. Pure. */
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import type { DiskElsewhere, HostId, store } from '@rackwright/messages';
import { idOf } from '../../records/index.ts';

export interface CauseDraft {
  readonly text: string;
  readonly since?: Timestamp | undefined;
  /** The disks of other hosts that the text names. */
  readonly disks?: readonly DiskElsewhere[];
}

/** The fields of an explanation; an unset field does not apply. */
export interface ExplanationDraft {
  readonly headline: string;
  readonly causes?: readonly CauseDraft[];
  readonly blocker?: string;
  readonly since?: Timestamp | undefined;
  readonly nextAttemptTime?: Timestamp | undefined;
  readonly deadline?: Timestamp | undefined;
  readonly unblock?: readonly string[];
}

/** The host's id for commands; a placeholder for a record without one. */
export function hostId({ host }: store.HostRecord): HostId {
  return host === undefined ? 'HOST' : idOf(host.name);
}
