/** The dependencies of the hosts' shell; each of its files uses a part of them. */
import type { Host, ReplicaId, Run, store as wire } from '@rackwright/messages';
import type { Clock, CrashPoint, Log, Random } from '@rackwright/platform';
import type { StateStore } from '@rackwright/store';
import type { AuditSink } from '../../audit/index.ts';
import type { FleetView } from '../../fleet-view/index.ts';
import type { StoreFollower } from '../../following/index.ts';
import type { EngineTiming } from '../pass/timing.ts';
import type { HostSnapshot } from '../pass/types.ts';
import type { CallWebhook } from '../pass/webhook-order.ts';
import type { SessionRegistry } from './sessions.ts';

export interface HostsDependencies {
  readonly store: StateStore;
  /** From the same store. */
  readonly following: StoreFollower;
  /** From the same store; not built yet. */
  readonly fleetView: Pick<FleetView, 'onChange' | 'onRecord' | 'start'>;
  readonly random: Random;
  readonly clock: Clock;
  readonly log: Log;
  readonly crashPoint: CrashPoint;
  readonly timing: EngineTiming;
  readonly registry: SessionRegistry;
  /** Signs the exact bytes of an erasure statement; DER. */
  readonly signStatement: (statement: Uint8Array) => Uint8Array;
  /** Opens a credential for the session that is about to need it. */
  readonly openCredential: (record: wire.CredentialRecord) => {
    username: string;
    password: string;
  };
  /** Records which secret was sent for which operation. */
  readonly audit?: AuditSink;
  /** Named in certificates. */
  readonly software?: HostSnapshot['software'];
  readonly resyncIntervalMs: number;
  /** Names this replica; the same at each start where there can be only one. */
  readonly replicaId: ReplicaId;
  /** Called once, by one replica, for each finished run, when its record is durable. */
  readonly onRunEnded?: (run: Run, host: Pick<Host, 'name' | 'uid'>) => void;
  /** Makes the calls of webhook steps. Unset: they fail. */
  readonly callWebhook?: CallWebhook;
}
