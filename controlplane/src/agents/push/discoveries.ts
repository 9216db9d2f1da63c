/**
 * Exchanges discovered machines with the agent of one session.
 *
 * Invariants:
 * 1. The policy is sent in each session, and again when it changes.
 * 2. A finding is acknowledged once its result is durable; without an acknowledgement the agent
 *    sends it again.
 * 3. One finding is processed at a time, within the rack's quota: each is compared with all known
 *    machines, of every rack. Findings beyond the quota are not acknowledged.
 */
import { create, equals } from '@bufbuild/protobuf';
import { agent, type RackId, type store as wire } from '@rackwright/messages';
import type { Buckets } from '@rackwright/platform';
import type { IntakeResult } from '../../discovery/index.ts';
import type { SessionDependencies } from '../base/dependencies.ts';
import type { SessionSink } from '../base/sink.ts';

type DiscoveriesDependencies = Pick<SessionDependencies, 'clock' | 'log' | 'discovery'>;

/** Findings that wait for earlier ones; as many machines may boot at once. */
const findingsWaitingMax = 64;

export class Discoveries {
  readonly #deps: DiscoveriesDependencies;
  readonly #rackId: RackId;
  readonly #send: SessionSink['send'];
  /** Shared by all sessions of the rack. */
  readonly #quotas: Buckets;
  #sent: agent.Discovery | undefined;
  /** Findings that have come and are not acknowledged. */
  readonly #waiting: agent.Discovered[] = [];
  #isTaking = false;

  constructor(
    deps: DiscoveriesDependencies,
    quotas: Buckets,
    rackId: RackId,
    send: SessionSink['send'],
  ) {
    this.#deps = deps;
    this.#quotas = quotas;
    this.#rackId = rackId;
    this.#send = send;
  }

  /** A heartbeat came; `rack` and `revision` are what the store has now. */
  onHeartbeat(rack: wire.RackRecord | undefined, revision: number): void {
    const { discovery } = this.#deps;
    if (discovery === undefined) return;
    const generation = BigInt(revision);
    const policy = create(agent.DiscoverySchema, { ...discovery.policyFor(rack), generation });
    const same = create(agent.DiscoverySchema, {
      ...policy,
      generation: this.#sent?.generation ?? 0n,
    });
    if (this.#sent !== undefined && equals(agent.DiscoverySchema, this.#sent, same)) return;
    this.#sent = policy;
    this.#send({ case: 'discovery', value: policy });
  }

  /** Processes a finding after the earlier ones, and acknowledges it (3). */
  receiveFinding(finding: agent.Discovered): void {
    if (this.#waiting.length >= findingsWaitingMax) return;
    const nowMs = this.#deps.clock.nowMs();
    if (this.#quotas.of(this.#rackId, nowMs).tryTake(1, nowMs) > 0) return;
    this.#waiting.push(finding);
    if (!this.#isTaking) void this.#takeAll();
  }

  /** The session is over: the agent sends the waiting findings again in the next one. */
  closed(): void {
    this.#waiting.length = 0;
  }

  async #takeAll(): Promise<void> {
    this.#isTaking = true;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      await this.#take(next);
    }
    this.#isTaking = false;
  }

  async #take(finding: agent.Discovered): Promise<void> {
    const { discovery, log } = this.#deps;
    if (discovery === undefined) return;
    try {
      const verdict = await discovery.report(this.#rackId, finding);
      const refusal = verdict.kind === 'refused' ? refusalOf(verdict) : {};
      const value = create(agent.DiscoveredAnswerSchema, { id: finding.id, ...refusal });
      this.#send({ case: 'discoveredAnswer', value });
    } catch (error) {
      const fields = { rack: this.#rackId, mac: finding.bootMac };
      log.warn(fields, 'a discovered machine could not be taken in; it will be told again', error);
    }
  }
}

function refusalOf({ cause, text, hostUid = '' }: Extract<IntakeResult, { kind: 'refused' }>) {
  return { refusal: cause, refused: text, hostUid };
}
