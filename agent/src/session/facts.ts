/**
 * Observed facts on their way up: the latest of each kind for each host. They are never
 * acknowledged, and the link may have been dead when they were sent. So each session gets all of
 * them again, except boots, which are evidence for people only. An unexpected netboot carries its
 * time and is over with the host's next boot grant: from then on the host boots what it is ordered
 * to.
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { agent, type BootTrace, type HostUid, type RunnerSessionId } from '@rackwright/messages';
import type { Log } from '@rackwright/platform';

export type ObservationsInit = MessageInitShape<typeof agent.ObservationsSchema>;

type ObservedFacts = Pick<
  agent.Observations,
  'bmcIdentity' | 'poweredOn' | 'inventory' | 'unexpectedNetboot' | 'runnerRefused'
>;

export class Facts {
  readonly #log: Log;
  readonly #hostsMax: number;
  readonly #byHost = new Map<HostUid, Partial<ObservedFacts>>();
  /**
   * Boots that ended without a session. Each is sent once, and is lost when the link is dead then.
   */
  readonly #traces = new Map<HostUid, BootTrace>();
  readonly #runners = new Map<HostUid, agent.RunnerReady>();

  constructor(log: Log, hostsMax: number) {
    this.#log = log;
    this.#hostsMax = hostsMax;
  }

  /** Keeps the fields that are given in place of those before. */
  publish(hostUid: HostUid, observations: agent.Observations): void {
    const { runnerReady } = observations;
    if (runnerReady !== undefined) this.#runners.set(hostUid, runnerReady);
    const merged = { ...this.#byHost.get(hostUid), ...given(observations) };
    this.#byHost.delete(hostUid);
    this.#byHost.set(hostUid, merged);
    const [oldest] = this.#byHost.keys();
    if (oldest !== undefined && this.#byHost.size > this.#hostsMax) {
      this.#log.warn({ host: oldest }, 'facts of too many hosts; dropped the oldest');
      this.#byHost.delete(oldest);
    }
  }

  /** Keeps the host's latest boot for the next session. */
  keepTrace(hostUid: HostUid, trace: BootTrace | undefined): void {
    if (trace === undefined) return;
    this.#traces.delete(hostUid);
    this.#traces.set(hostUid, trace);
    const [oldest] = this.#traces.keys();
    if (oldest !== undefined && this.#traces.size > this.#hostsMax) this.#traces.delete(oldest);
  }

  takeTraces(): readonly (readonly [hostUid: HostUid, trace: BootTrace])[] {
    const traces = [...this.#traces];
    this.#traces.clear();
    return traces;
  }

  /** The host is about to be booted by order: earlier observations of its boots no longer count. */
  clearBootFacts(hostUid: HostUid): void {
    const observed = this.#byHost.get(hostUid);
    delete observed?.unexpectedNetboot;
    delete observed?.runnerRefused;
  }

  /** The boot whose runner was refused last. */
  refusedBoot(hostUid: HostUid): string | undefined {
    return this.#byHost.get(hostUid)?.runnerRefused?.bootOperationId;
  }

  /** The runner of this session has gone; another session of the same host stays. */
  runnerGone(hostUid: HostUid, runnerSession: RunnerSessionId): void {
    if (this.#runners.get(hostUid)?.runnerSession === runnerSession) this.#runners.delete(hostUid);
  }

  forgetHost(hostUid: HostUid): void {
    this.#byHost.delete(hostUid);
    this.#traces.delete(hostUid);
    this.#runners.delete(hostUid);
  }

  /** For Hello. */
  runners(): readonly agent.RunnerReady[] {
    return [...this.#runners.values()];
  }

  /** All facts but the runners, which Hello lists. */
  all(): readonly (readonly [hostUid: HostUid, observations: agent.Observations])[] {
    return [...this.#byHost]
      .filter(([, observed]) => Object.keys(observed).length > 0)
      .map(([hostUid, observed]) => [hostUid, create(agent.ObservationsSchema, observed)]);
  }
}

/** Only the fields that are set. */
function given(observations: agent.Observations): Partial<ObservedFacts> {
  const names = [
    ...(['bmcIdentity', 'poweredOn', 'inventory'] as const),
    ...(['unexpectedNetboot', 'runnerRefused'] as const),
  ];
  const set = names.filter((name) => observations[name] !== undefined);
  return Object.fromEntries(set.map((name) => [name, observations[name]]));
}
