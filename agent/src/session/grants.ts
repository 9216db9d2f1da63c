/**
 * Boot grants: which host may boot the runner, and which key has taken the boot up. All of it
 * stands in the journal; this is a view of it.
 *
 * G1 A grant counts only once it is durable, so that a restart never knows less than a host.
 * G2 A host has at most one open grant.
 * G3 The first key that presents the token owns the boot and may come back with that key at any
 *    time; another key never may.
 * G4 Expiry ends only the permission to start a runner. It is judged by the later of the clock and
 *    the last time that was written, so that a clock that steps back reopens nothing.
 * G5 A boot whose runner a step takes away starts no runner any more, however young its grant is.
 */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { agent, type HostUid, type OperationId } from '@rackwright/messages';
import { type Clock, type Random, randomId } from '@rackwright/platform';
import type { Journal, JournalledGrant, RecordInit } from '../journal/index.ts';
import type { BootGrantState, OperationContext } from './executor.ts';

export type BindOutcome = 'bound' | 'otherKey' | 'expired' | 'noGrant';

export interface GrantDependencies {
  readonly journal: Journal;
  readonly clock: Clock;
  readonly random: Random;
  /** A grant has become durable. */
  readonly onOpened: (grant: BootGrantState) => void;
}

/** A grant as an operation requests it. */
type WantedGrant = Parameters<OperationContext['openGrant']>[0];

export class Grants {
  readonly #deps: GrantDependencies;
  /** By operation id; for grants that this life of the agent has opened and not closed. */
  readonly #openedSuspendAwareMs = new Map<OperationId, number>();

  constructor(deps: GrantDependencies) {
    this.#deps = deps;
  }

  /** Every grant that has not been closed, expired ones included. */
  all(): readonly BootGrantState[] {
    return [...this.#deps.journal.state.grants.values()].map((grant) => this.#grantOf(grant));
  }

  /** Every grant whose host is not handed off: it may start a runner, or has started it. */
  active(): readonly BootGrantState[] {
    return this.all().filter(({ handedOff }) => handedOff === undefined);
  }

  /** Whether a host is to boot into a runner, or a step to take its runner away, by now. */
  isAnyAwaited(): boolean {
    const nowMs = this.#deps.clock.nowMs();
    return this.all().some(({ publicKey, handedOff, expiresAtMs }) => {
      if (handedOff !== undefined) return handedOff.deadlineMs > nowMs;
      return publicKey === undefined && expiresAtMs > nowMs;
    });
  }

  byToken(bootToken: string): BootGrantState | undefined {
    return bootToken === '' ? undefined : this.all().find((it) => it.bootToken === bootToken);
  }

  byOperation(operationId: OperationId): BootGrantState | undefined {
    const grant = this.#deps.journal.state.grants.get(operationId);
    return grant && this.#grantOf(grant);
  }

  /** Opens the operation's grant and closes the host's others (G2). Rejects when not durable. */
  async open(
    operation: Pick<agent.Operation, 'id' | 'hostUid' | 'hostName'>,
    { macs, expiresAtMs, rescue = false }: WantedGrant,
  ): Promise<BootGrantState> {
    const { journal, clock, random } = this.#deps;
    const known = this.byOperation(operation.id);
    if (known !== undefined) return known;
    const openedSuspendAwareMs = clock.suspendAwareMs();
    const opened = create(agent.GrantOpenedSchema, {
      operationId: operation.id,
      hostUid: operation.hostUid,
      hostName: operation.hostName,
      macs: [...macs],
      bootToken: randomId(random),
      openTime: timestampFromMs(clock.nowMs()),
      expireTime: timestampFromMs(expiresAtMs),
      rescue,
    });
    const outdated = this.#openWhere(
      (grant) => grant.opened.hostUid === operation.hostUid || this.#deadAndUnbound(grant),
    );
    await journal.append(...outdated.map(closedRecord), { case: 'grantOpened', value: opened });
    this.#openedSuspendAwareMs.set(operation.id, openedSuspendAwareMs);
    for (const closed of outdated) this.#openedSuspendAwareMs.delete(closed);
    const grant = this.#grantOf({ opened });
    this.#deps.onOpened(grant);
    return grant;
  }

  /** Gives the boot to the first key (G3). Rejects when that cannot be made durable. */
  async bind(operationId: OperationId, publicKey: Uint8Array): Promise<BindOutcome> {
    const before = this.byOperation(operationId);
    if (before === undefined) return 'noGrant';
    if (before.publicKey !== undefined) return ownership(before.publicKey, publicKey);
    if (this.#expired(before.expiresAtMs)) return 'expired';
    const { journal } = this.#deps;
    await journal.append({ case: 'grantBound', value: { operationId, publicKey } });
    // Another key may have been quicker, or the grant was closed meanwhile.
    const owner = this.byOperation(operationId)?.publicKey;
    return owner === undefined ? 'noGrant' : ownership(owner, publicKey);
  }

  /**
   * Closes one: its token is valid for nobody any more. Rejects when that cannot be made durable.
   */
  async close(operationId: OperationId): Promise<void> {
    const grant = this.byOperation(operationId);
    if (grant !== undefined) await this.#deps.journal.append(closedRecord(operationId));
    this.#openedSuspendAwareMs.delete(operationId);
  }

  /** Closes every grant of a host. Rejects when that cannot be made durable. */
  async closeHost(hostUid: HostUid): Promise<void> {
    const open = this.#openWhere(({ opened }) => opened.hostUid === hostUid);
    if (open.length > 0) await this.#deps.journal.append(...open.map(closedRecord));
    for (const operationId of open) this.#openedSuspendAwareMs.delete(operationId);
  }

  #grantOf(journalled: JournalledGrant): BootGrantState {
    const openedSuspendAwareMs = this.#openedSuspendAwareMs.get(journalled.opened.operationId);
    const grant = grantOf(journalled);
    return openedSuspendAwareMs === undefined ? grant : { ...grant, openedSuspendAwareMs };
  }

  /** Ids of the operations whose journalled grants satisfy `isIt`. */
  #openWhere(isIt: (grant: JournalledGrant) => boolean): readonly string[] {
    const found: string[] = [];
    for (const [operationId, grant] of this.#deps.journal.state.grants) {
      if (isIt(grant)) found.push(operationId);
    }
    return found;
  }

  #deadAndUnbound({ publicKey, opened }: JournalledGrant): boolean {
    return publicKey === undefined && this.#expired(expiryMs(opened));
  }

  #expired(expiresAtMs: number): boolean {
    const { journal, clock } = this.#deps;
    return Math.max(clock.nowMs(), journal.state.latestTimeMs) >= expiresAtMs;
  }
}

function closedRecord(operationId: OperationId): RecordInit {
  return { case: 'grantClosed', value: { operationId } };
}

function ownership(owner: Uint8Array, presented: Uint8Array): BindOutcome {
  const same =
    owner.length === presented.length && owner.every((byte, at) => byte === presented[at]);
  return same ? 'bound' : 'otherKey';
}

function handedOffOf({ opened, handedOff }: JournalledGrant): Pick<BootGrantState, 'handedOff'> {
  if (handedOff === undefined) return {};
  const { handOffOperationId: operationId, destructive, deadline } = handedOff;
  const deadlineMs = deadline === undefined ? Number.POSITIVE_INFINITY : timestampMs(deadline);
  const { operationId: bootOperationId } = opened;
  return { handedOff: { operationId, bootOperationId, destructive, deadlineMs } };
}

function expiryMs({ expireTime }: agent.GrantOpened): number {
  return expireTime === undefined ? 0 : timestampMs(expireTime);
}

function grantOf({ opened, publicKey, handedOff }: JournalledGrant): BootGrantState {
  const { operationId, hostUid, hostName, macs, bootToken, openTime, rescue } = opened;
  return {
    operationId,
    hostUid,
    hostName,
    macs,
    bootToken,
    openedAtMs: openTime === undefined ? 0 : timestampMs(openTime),
    expiresAtMs: expiryMs(opened),
    rescue,
    ...(publicKey === undefined ? {} : { publicKey }),
    ...handedOffOf({ opened, ...(handedOff === undefined ? {} : { handedOff }) }),
  };
}
