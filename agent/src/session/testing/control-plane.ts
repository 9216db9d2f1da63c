/**
 * The other side of the stream, as small as the rules allow: it issues operations, records where it
 * sent them (R9), answers reports, renews leases, and remembers every message. It speaks the real
 * messages, as bytes.
 */
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import {
  agent,
  asAgentSessionId,
  asIncarnation,
  asRevision,
  type HostUid,
  type OperationId,
} from '@rackwright/messages';
import { type Result, resultFromWire, type UnsupportedReport } from '@rackwright/results';
import type { SessionTransport, StreamConnection, TransportHandlers } from '../transport.ts';
import type { TestClock } from './clock.ts';

export interface Issued {
  readonly operation: agent.Operation;
  sentTo?: agent.Journal;
  /** The first report that was applied. */
  outcome?: Result | UnsupportedReport;
}

interface Stream {
  readonly number: number;
  readonly handlers: TransportHandlers;
  open: boolean;
  hello?: agent.Hello;
}

export class ControlPlane {
  readonly #clock: TestClock;
  #streams = 0;
  #stream: Stream | undefined;
  readonly issued = new Map<OperationId, Issued>();
  /** Final reports, in the order they came, redeliveries included. */
  readonly reports: agent.Report[] = [];
  readonly facts: agent.Report[] = [];
  readonly hellos: agent.Hello[] = [];
  readonly others: agent.SessionRequest['message'][] = [];
  reachable = true;
  /** A cut stream still delivers messages under way. */
  lateMessages = false;
  latencyMs = 2;
  heartbeatIntervalMs = 1000;
  /** 0: as with work. */
  idleHeartbeatIntervalMs = 0;
  /** 0 renews nothing. */
  leaseMs = 5000;
  /** Said with each renewal; empty: nothing is frozen. */
  frozen = '';
  /** Said with each renewal. */
  brake = agent.BrakeKind.UNSPECIFIED;
  incarnation = asIncarnation('incarnation-1');
  revision = asRevision(10);
  answers = true;
  verdict: agent.ReportAnswer_Verdict = agent.ReportAnswer_Verdict.APPLIED;
  settles = true;
  forgetHostUids: HostUid[] = [];
  refusal: agent.Refused | undefined;
  /** The directive for an operation that Hello lists; undefined leaves it out. */
  direct = (line: agent.JournalledOperation): agent.Directive_Action | undefined => {
    const issued = this.issued.get(line.operationId);
    if (issued === undefined || issued.outcome !== undefined) return agent.Directive_Action.FORGET;
    return agent.Directive_Action.CONTINUE;
  };

  constructor(clock: TestClock) {
    this.#clock = clock;
  }

  get connected(): boolean {
    return this.#stream?.hello !== undefined;
  }

  /** The transport of one life of an agent. */
  open(): { readonly transport: SessionTransport; kill(): void } {
    let alive = true;
    const connect = (handlers: TransportHandlers): StreamConnection => {
      const guarded: TransportHandlers = {
        onMessage: (message) => alive && handlers.onMessage(message),
        onClosed: (reason) => alive && handlers.onClosed(reason),
      };
      return this.#connect(guarded, () => alive);
    };
    const kill = () => {
      alive = false;
      this.#stream = undefined;
    };
    return { transport: { connect }, kill };
  }

  /** Cuts the stream: messages under way in either direction are lost. */
  cut(): void {
    const stream = this.#stream;
    this.#stream = undefined;
    if (stream === undefined) return;
    stream.open = false;
    this.#clock.at(this.latencyMs, () => stream.handlers.onClosed('cut'));
  }

  issue(operation: agent.Operation): void {
    const issued: Issued = { operation };
    this.issued.set(operation.id, issued);
    if (this.#stream?.hello !== undefined) this.#sendOperation(this.#stream, issued);
  }

  send(message: MessageInitShape<typeof agent.SessionResponseSchema>['message']): void {
    if (this.#stream !== undefined) this.#deliver(this.#stream, message);
  }

  outcome(operationId: OperationId): Result | UnsupportedReport | undefined {
    return this.issued.get(operationId)?.outcome;
  }

  #connect(handlers: TransportHandlers, alive: () => boolean): StreamConnection {
    this.#streams += 1;
    const stream: Stream = { number: this.#streams, handlers, open: true };
    if (!this.reachable) {
      this.#clock.at(this.latencyMs, () => handlers.onClosed('unreachable'));
      return { send: () => undefined, close: () => undefined };
    }
    this.#stream = stream;
    return {
      send: (request) => {
        if (!alive()) return;
        const bytes = toBinary(agent.SessionRequestSchema, request);
        this.#clock.at(this.latencyMs, () => {
          if (stream.open) this.#take(stream, fromBinary(agent.SessionRequestSchema, bytes));
        });
      },
      close: () => {
        if (!alive()) return;
        stream.open = false;
        if (this.#stream === stream) this.#stream = undefined;
      },
    };
  }

  #deliver(
    stream: Stream,
    message: MessageInitShape<typeof agent.SessionResponseSchema>['message'],
  ): void {
    const init = message === undefined ? {} : { message };
    const bytes = toBinary(agent.SessionResponseSchema, create(agent.SessionResponseSchema, init));
    this.#clock.at(this.latencyMs, () => {
      if (!stream.open && !this.lateMessages) return;
      stream.handlers.onMessage(fromBinary(agent.SessionResponseSchema, bytes));
    });
  }

  #take(stream: Stream, { message }: agent.SessionRequest): void {
    switch (message.case) {
      case 'hello':
        return this.#welcome(stream, message.value);
      case 'heartbeat': {
        const { sequence: heartbeatSequence } = message.value;
        const { leaseMs: durationMs, revision, frozen, brake } = this;
        const value = { heartbeatSequence, durationMs, revision, frozen, brake };
        if (this.leaseMs > 0) this.#deliver(stream, { case: 'leaseRenewal', value });
        return;
      }
      case 'report':
        if (message.value.sequence === 0n) this.facts.push(message.value);
        else this.#answer(stream, message.value);
        return;
      default:
        this.others.push(message);
    }
  }

  #welcome(stream: Stream, hello: agent.Hello): void {
    this.hellos.push(hello);
    if (this.refusal !== undefined) {
      return this.#deliver(stream, { case: 'refused', value: this.refusal });
    }
    stream.hello = hello;
    const directives = hello.operations.flatMap((line) => {
      const action = this.direct(line);
      return action === undefined ? [] : [{ operationId: line.operationId, action }];
    });
    const { incarnation, revision, forgetHostUids } = this;
    const { heartbeatIntervalMs, idleHeartbeatIntervalMs } = this;
    const sessionId = `session-${stream.number}`;
    this.#deliver(stream, {
      case: 'welcome',
      value: {
        sessionId: asAgentSessionId(sessionId),
        incarnation,
        revision,
        heartbeatIntervalMs,
        idleHeartbeatIntervalMs,
        directives,
        forgetHostUids: [...forgetHostUids],
      },
    });
    const known = new Set(hello.operations.map(({ operationId }) => operationId));
    for (const [id, issued] of this.issued) {
      if (issued.outcome === undefined && !known.has(id)) this.#sendOperation(stream, issued);
    }
  }

  /** R9: never to another journal, nor to an older generation, than the first time. */
  #sendOperation(stream: Stream, issued: Issued): void {
    const journal = stream.hello?.journal;
    if (journal === undefined) throw new Error('Hello without a journal');
    const { sentTo } = issued;
    const elsewhere =
      sentTo !== undefined && (sentTo.id !== journal.id || sentTo.generation > journal.generation);
    if (elsewhere) {
      issued.outcome = { kind: 'failed', type: 'interrupted', message: 'sent to another journal' };
      return;
    }
    issued.sentTo = journal;
    this.#deliver(stream, { case: 'operation', value: issued.operation });
  }

  #answer(stream: Stream, report: agent.Report): void {
    this.reports.push(report);
    if (!this.answers) return;
    const issued = this.issued.get(report.operationId);
    if (issued !== undefined) issued.outcome ??= resultFromWire(report);
    const { sequence, operationId } = report;
    const settledUpTo = this.settles ? sequence : 0n;
    const value = { sequence, operationId, verdict: this.verdict, reason: '', settledUpTo };
    this.#deliver(stream, { case: 'reportAnswer', value });
  }
}
