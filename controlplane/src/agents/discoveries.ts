/**
 * What one session tells its agent of machines that nobody knows, and hears of them.
 *
 * Invariants:
 * 1. The policy goes out in each session, and again when it changes.
 * 2. A finding is answered once what became of it is durable; unanswered, it comes again.
 */
import { create, equals } from '@bufbuild/protobuf';
import { agent, type store as wire } from '@rackwright/api';
import type { Log } from '@rackwright/platform';
import type { Discovery } from '../discovery/index.ts';
import type { SessionSink } from './rack-session.ts';

export interface DiscoveriesDependencies {
  readonly log: Log;
  /** Without it machines that nobody knows get nothing. */
  readonly discovery?: Pick<Discovery, 'policyFor' | 'report'>;
}

export class Discoveries {
  readonly #deps: DiscoveriesDependencies;
  readonly #rackId: string;
  readonly #send: SessionSink['send'];
  #sent: agent.Discovery | undefined;

  constructor(deps: DiscoveriesDependencies, rackId: string, send: SessionSink['send']) {
    this.#deps = deps;
    this.#rackId = rackId;
    this.#send = send;
  }

  /** A heartbeat came; `rack` and `revision` are what the store has now. */
  heard(rack: wire.RackRecord | undefined, revision: number): void {
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

  /** Takes a finding in, and answers it. */
  async found(finding: agent.Discovered): Promise<void> {
    const { discovery, log } = this.#deps;
    if (discovery === undefined) return;
    try {
      const refused = await discovery.report(this.#rackId, finding);
      const value = create(agent.DiscoveredAnswerSchema, { id: finding.id, refused });
      this.#send({ case: 'discoveredAnswer', value });
    } catch (error) {
      const fields = { rack: this.#rackId, mac: finding.bootMac, error: String(error) };
      log.warn(fields, 'a discovered machine could not be taken in; it will be told again');
    }
  }
}
