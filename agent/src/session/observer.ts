/** Follows what a session does, for people. Each call returns at once, and never throws. */
import type { HostUid } from '@rackwright/messages';
import type { BootGrantState } from './executor.ts';

export interface SessionObserver {
  /** A boot grant has become durable. */
  bootOpened(grant: BootGrantState): void;
  /** All of a host is to be forgotten. */
  hostForgotten(hostUid: HostUid): void;
  /** Reports of the session before no longer count. */
  sessionOpened(): void;
}
