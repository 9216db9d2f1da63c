/**
 * An agent without behaviour of its own: its side of a session as plain messages, over the real
 * service of the control plane.
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  type HostUid,
  type Incarnation,
  type RackId,
  type Revision,
} from '@rackwright/messages';
import { Outbox } from '../../agents/base/outbox.ts';
import {
  bootOfRunner,
  type EvidenceChanges,
  erased,
  inspected,
  signEvidence,
  uuid,
  virtioDisk,
} from './bench.ts';
import type { Replica, Rig } from './rig.ts';

type Result = agent.Report['result'];
type Message = NonNullable<
  Exclude<MessageInitShape<typeof agent.SessionRequestSchema>, agent.SessionRequest>['message']
>;

export interface Connecting {
  readonly rackId?: RackId;
  readonly journal?: MessageInitShape<typeof agent.JournalSchema>;
  readonly operations?: MessageInitShape<typeof agent.JournalledOperationSchema>[];
  readonly runners?: MessageInitShape<typeof agent.RunnerReadySchema>[];
  readonly operationKinds?: readonly string[];
  /** What it has seen of the store; unset: nothing. */
  readonly seen?: {
    readonly incarnation: Incarnation;
    readonly revision: Revision;
    readonly lostRevisions?: Revision;
  };
}

const allKinds = ['verifyAccess', 'setPower', 'inspect', 'runStep', 'cancel'];

export class PlainAgent {
  readonly received: agent.SessionResponse['message'][] = [];
  /** Whether the control plane has ended the stream. */
  ended = false;
  readonly #rig: Rig;
  readonly #requests = new Outbox<agent.SessionRequest>(1_000);
  readonly #abort = new AbortController();
  #sequence = 0n;
  #heartbeats = 0n;
  #stalled = false;

  constructor(rig: Rig, { service }: Replica, rackId: RackId) {
    this.#rig = rig;
    const responses = service.session(this.#requests, {
      method: '/rackwright.agent.v1.AgentService/Session',
      header: () => undefined,
      peerAddress: rackId,
      peerCertificate: () => undefined,
      signal: this.#abort.signal,
      deadlineMs: Infinity,
    });
    void this.#receive(responses);
  }

  async #receive(responses: AsyncIterable<{ message: agent.SessionResponse['message'] }>) {
    for await (const { message } of responses) {
      this.received.push(message);
      if (this.#stalled) await new Promise<void>(() => {});
    }
    this.ended = true;
  }

  /** Reads one more message, and nothing after it: the stream does not learn of its end. */
  stall(): void {
    this.#stalled = true;
  }

  /** Sends a message and lets its effects happen. */
  async say(message: Message) {
    this.send(message);
    await this.#rig.advance(1);
  }

  /** Sends a message only. */
  send(message: Message): void {
    this.#requests.push(create(agent.SessionRequestSchema, { message }));
  }

  hello(connecting: Connecting): void {
    const { journal, operations = [], runners = [], operationKinds = allKinds, seen } = connecting;
    const named = { operations, runners, operationKinds: [...operationKinds], ...seen };
    const value = { journal: journal ?? { id: 'j1', generation: 1n }, ...named };
    this.send({ case: 'hello', value });
  }

  heartbeat(): Promise<void> {
    this.#heartbeats += 1n;
    return this.say({ case: 'heartbeat', value: { sequence: this.#heartbeats } });
  }

  /** Sends a heartbeat every three seconds for this long. */
  async beat(forMs: number): Promise<void> {
    for (let passedMs = 0; passedMs < forMs; passedMs += 3_000) {
      await this.#rig.advance(2_999);
      await this.heartbeat();
    }
  }

  /** Reports a result of an operation; of the last one, unless another is given. */
  report(result: Result, { id, hostUid }: Pick<agent.Operation, 'id' | 'hostUid'> = this.last()) {
    this.#sequence += 1n;
    const report = create(agent.ReportSchema, {
      sequence: this.#sequence,
      operationId: id,
      hostUid,
      time: timestampFromMs(this.#rig.clock.nowMs()),
      result,
    });
    return this.say({ case: 'report', value: report });
  }

  /** Reports facts without an operation. */
  facts(observations: MessageInitShape<typeof agent.ObservationsSchema>, hostUid = 'u1') {
    const value = create(agent.HostUpdatedSchema, { observations });
    return this.say({ case: 'report', value: { hostUid, result: { case: 'hostUpdated', value } } });
  }

  of<C extends NonNullable<agent.SessionResponse['message']['case']>>(kind: C) {
    return this.received.flatMap((message) =>
      message.case === kind
        ? [message.value as Extract<agent.SessionResponse['message'], { case: C }>['value']]
        : [],
    );
  }

  /** Ids of the orders, including cancels, in order. */
  ids(): string[] {
    return this.of('operation').map(({ id }) => id);
  }

  /** The last order that is not a cancel. */
  last(hostUid?: HostUid): agent.Operation {
    const last = this.of('operation').findLast(
      ({ kind, hostUid: uid }) =>
        kind.case !== 'cancel' && (hostUid === undefined || uid === hostUid),
    );
    if (last === undefined) throw new Error('no operation has come');
    return last;
  }

  evidence(
    devices: MessageInitShape<typeof agent.DeviceOutcomeSchema>[],
    changes?: EvidenceChanges,
  ): agent.Evidence {
    return signEvidence(this.#rig.keys, this.last(), devices, changes);
  }

  /** The link drops. */
  async cut(): Promise<void> {
    this.#requests.end();
    this.#abort.abort();
    await this.#rig.advance(1);
  }
}

/** Connects an agent and says Hello. */
export async function connectAgent(
  rig: Rig,
  replica: Replica,
  connecting: Connecting = {},
  forMs = 1,
): Promise<PlainAgent> {
  const plain = new PlainAgent(rig, replica, connecting.rackId ?? 'r1');
  plain.hello(connecting);
  await rig.advance(forMs);
  return plain;
}

export const complete = (
  observations: MessageInitShape<typeof agent.ObservationsSchema> = {},
): Result => ({
  case: 'complete',
  value: create(agent.CompleteSchema, { observations }),
});

/** The result of a verify of host N; the first host is the one that `inspected` finds. */
export function proved(n = 1, seen: { readonly poweredOn?: boolean } = {}): Result {
  const guid = n === 1 ? uuid : new Uint8Array(16).fill(n);
  return complete({ bmcIdentity: { guid, serial: `SN-${n}` }, ...seen });
}

type Steps = Exclude<MessageInitShape<typeof agent.StepDescriptionSchema>, agent.StepDescription>[];

/** The runner of h1 comes up with these steps; none: as a runner that announces none. */
export async function runnerUp(rig: Rig, plain: PlainAgent, steps: Steps = []): Promise<void> {
  const bootOperationId = bootOfRunner(rig.status().run);
  const runnerReady = { hostUid: 'u1', bootOperationId, runnerSession: 's1', bootId: 'b1', steps };
  await plain.facts({ runnerReady });
}

/** From the start of a run of h1 that boots the runner to its first inspection. */
export async function toInspect(rig: Rig, plain: PlainAgent, steps: Steps = []): Promise<void> {
  await plain.report(complete());
  await plain.report(complete());
  await runnerUp(rig, plain, steps);
}

/** From a new h1 to the erase step of its first clean. */
export async function toErase(
  rig: Rig,
  plain: PlainAgent,
  devices = [virtioDisk],
  steps: Steps = [],
): Promise<void> {
  await plain.report(proved());
  await toInspect(rig, plain, steps);
  await plain.report(inspected(devices));
  await plain.report(inspected(devices));
}

/** From a new h1 to available. */
export async function toAvailable(rig: Rig, plain: PlainAgent): Promise<void> {
  await toErase(rig, plain);
  await afterErase(plain, plain.evidence([erased(virtioDisk)]));
}

/** The end of a clean, from the evidence of its erase step. */
export async function afterErase(plain: PlainAgent, evidence: agent.Evidence): Promise<void> {
  await plain.report({ case: 'complete', value: create(agent.CompleteSchema, { evidence }) });
  await plain.report(inspected([virtioDisk]));
  await plain.report(complete());
}
