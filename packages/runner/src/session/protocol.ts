/**
 * The runner's side of its session with the agent, without any input or output: events go in,
 * effects come out, to be carried out one after another in their order.
 *
 * Invariants:
 * 1. At most one operation is at work; another order meanwhile is answered `retryAfter: locked`.
 * 2. An operation id is begun at most once in a boot, also after repeated orders, reordering or a
 *    restart (R4). A predecessor's operation is reported `failed: interrupted`, never resumed.
 * 3. Every change of the record is saved before anything follows from it.
 * 4. A final report is kept, and sent again on each new connection, until the agent has it;
 *    evidence goes just before its report.
 * 5. Texts of tools and devices are cut before they become a report.
 * 6. An order of an unknown kind or step is never success (R8).
 * 7. A hand-off is reported complete before it acts. It acts when the agent says that the control
 *    plane has recorded that, once, also across a restart; from its report on nothing else begins.
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type BootMedium, bootMediaOf } from '@rackwright/erasure';
import { type Inventory, type OperationId, type RunnerSessionId } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import type * as runner from '@rackwright/messages/runner';
import {
  boundResult,
  type Complete,
  type FinalResult,
  type Result,
  resultToWire,
} from '@rackwright/results';
import type { FinishedOperation, RunnerRecord } from './record.ts';

type RequestMessage = runner.SessionRequest['message'];

export type SessionEvent =
  | { readonly kind: 'accepted'; readonly runnerSession: RunnerSessionId }
  | { readonly kind: 'disconnected' }
  | { readonly kind: 'order'; readonly order: runner.Order }
  | {
      readonly kind: 'reportReceived';
      readonly operationId: OperationId;
      /** True for a hand-off: it may act. */
      readonly handOff: boolean;
    }
  | { readonly kind: 'stageReached'; readonly operationId: OperationId; readonly progress: string }
  | {
      readonly kind: 'progressed';
      readonly operationId: OperationId;
      readonly percent: number;
      readonly text: string;
    }
  /** It was permitted, and destroys from here on. */
  | { readonly kind: 'begun'; readonly operationId: OperationId }
  | {
      readonly kind: 'ended';
      readonly operationId: OperationId;
      readonly result: FinalResult;
      readonly evidence?: MessageInitShape<typeof agent.StepEvidenceSchema>;
      /** The order of a hand-off that can act. */
      readonly handOff?: agent.RunStep;
    };

export type SessionEffect =
  | { readonly kind: 'send'; readonly message: RequestMessage }
  | { readonly kind: 'save'; readonly record: RunnerRecord }
  | { readonly kind: 'crashPoint'; readonly name: string }
  | {
      readonly kind: 'runStep';
      readonly operationId: OperationId;
      readonly order: agent.RunStep;
      /** Never saved. */
      readonly secretEnvironment: Readonly<Record<string, string>>;
      readonly deploy: OrderedImage;
      /** W3C Trace Context of the operation; unset: it has none. */
      readonly traceParent?: string;
    }
  | {
      readonly kind: 'inspect';
      readonly operationId: OperationId;
      readonly runnerSession: RunnerSessionId;
      readonly bootMedia: readonly BootMedium[];
    }
  /** Finds out whether a hand-off can act, without doing anything. */
  | {
      readonly kind: 'checkHandOff';
      readonly operationId: OperationId;
      readonly order: agent.RunStep;
    }
  /** The effect of the hand-off. */
  | { readonly kind: 'handOff'; readonly operationId: OperationId; readonly order: agent.RunStep }
  | { readonly kind: 'stop'; readonly operationId: OperationId };

/** An order's fields about the image of its host. */
export type OrderedImage = Pick<runner.Order, 'imageFile' | 'phoneHomeUrl'>;

/** Between two progress messages, milliseconds. */
export const progressIntervalMs = 500;
/** The delay that a second order gets, milliseconds. */
const lockedDelayMs = 5_000;

/** The progress text of a hand-off before it acts: it shows the agent that the order arrived. */
const leaving = 'takes the runner away';

interface OperationInTheWay {
  readonly kind: 'atWork' | 'handOff';
  /** For people. */
  readonly text: string;
}

interface Current {
  readonly operationId: OperationId;
  readonly step: string;
  percent: number;
  text: string;
  /** The permitted work has begun. */
  begun: boolean;
  /** Ids of Cancel orders to be answered when it is over. */
  readonly cancels: string[];
}

export class RunnerProtocol {
  readonly #knownSteps: ReadonlySet<string>;
  #record: RunnerRecord;
  #current: Current | undefined;
  #runnerSession: RunnerSessionId | undefined;
  #reportedAtMs = Number.NEGATIVE_INFINITY;

  /**
   * `record` is the predecessor's. Its outstanding operation becomes a final report at once, which
   * the caller saves with the first effects.
   */
  constructor(record: RunnerRecord, knownSteps: readonly string[], nowMs: number) {
    this.#knownSteps = new Set(knownSteps);
    this.#record = interruptOutstanding(record, nowMs);
  }

  get record(): RunnerRecord {
    return this.#record;
  }

  /** Whether the agent listens. */
  get isAccepted(): boolean {
    return this.#runnerSession !== undefined;
  }

  /** The ids of final reports that the agent does not have yet, oldest first. */
  get unreceivedIds(): string[] {
    return this.#record.finished.map(({ operationId }) => operationId);
  }

  handle(event: SessionEvent, nowMs: number): SessionEffect[] {
    switch (event.kind) {
      case 'accepted':
        return this.#accepted(event.runnerSession, nowMs);
      case 'disconnected':
        this.#runnerSession = undefined;
        return [];
      case 'order':
        return this.#ordered(event.order, nowMs);
      case 'reportReceived':
        return this.#received(event.operationId, event.handOff, nowMs);
      case 'stageReached':
        return this.#stageReached(event.operationId, event.progress);
      case 'progressed':
        return this.#progressed(event, nowMs);
      case 'begun':
        return this.#begun(event.operationId, nowMs);
      case 'ended':
        return this.#ended(event, nowMs);
    }
  }

  #accepted(runnerSession: RunnerSessionId, nowMs: number): SessionEffect[] {
    this.#runnerSession = runnerSession;
    const reports = this.#record.finished.flatMap((finished) => sendFinished(finished));
    return [...reports, ...this.#sendProgress(nowMs)];
  }

  #ordered(order: runner.Order, nowMs: number): SessionEffect[] {
    const { operationId, kind } = order;
    if (kind.case === 'cancel') return this.#cancel(operationId, kind.value.operationId, nowMs);
    if (this.#current?.operationId === operationId) return this.#sendProgress(nowMs);
    const finished = this.#record.finished.find((each) => each.operationId === operationId);
    if (finished !== undefined) return sendFinished(finished);
    if (this.#record.receivedIds.includes(operationId)) {
      return this.#answer(
        operationId,
        conflict('duplicate', 'was done and reported before'),
        nowMs,
      );
    }
    const inTheWay = this.#inTheWay();
    if (inTheWay !== undefined) {
      return this.#answer(operationId, conflict('locked', inTheWay.text), nowMs);
    }
    switch (kind.case) {
      case 'inspect':
        return this.#begin(operationId, 'inspect', [
          {
            ...{ kind: 'inspect', operationId, runnerSession: this.#runnerSession ?? '' },
            bootMedia: bootMediaOf(kind.value.bootMedia),
          },
        ]);
      case 'runStep':
        return this.#runStep(order, kind.value, nowMs);
      case undefined:
        return this.#answer(operationId, unsupported('the kind of the order is unknown'), nowMs);
    }
  }

  /** The operation because of which nothing can begin now. */
  #inTheWay(): OperationInTheWay | undefined {
    if (this.#current !== undefined) {
      return { kind: 'atWork', text: `${this.#current.operationId} is at work` };
    }
    const { handOff } = this.#record;
    if (handOff === undefined) return undefined;
    return { kind: 'handOff', text: `${handOff.operationId} takes the runner away` };
  }

  #runStep(
    { operationId, secretEnvironment, imageFile, phoneHomeUrl, traceParent }: runner.Order,
    order: agent.RunStep,
    nowMs: number,
  ): SessionEffect[] {
    if (!this.#knownSteps.has(order.step)) {
      const known = [...this.#knownSteps].join(', ');
      const message = `the step "${order.step}" is unknown; known are ${known}`;
      return this.#answer(operationId, unsupported(message), nowMs);
    }
    const effect: SessionEffect =
      order.handOff === true
        ? { kind: 'checkHandOff', operationId, order }
        : {
            ...{ kind: 'runStep', operationId, order, secretEnvironment },
            deploy: { ...(imageFile === undefined ? {} : { imageFile }), phoneHomeUrl },
            ...(traceParent === '' ? {} : { traceParent }),
          };
    return this.#begin(operationId, order.step, [effect]);
  }

  #begin(operationId: OperationId, step: string, effects: SessionEffect[]): SessionEffect[] {
    this.#current = { operationId, step, percent: 0, text: 'begun', begun: false, cancels: [] };
    const progress = '';
    this.#record = { ...this.#record, outstanding: { operationId, progress } };
    return [this.#save(), { kind: 'crashPoint', name: 'runner.received' }, ...effects];
  }

  #cancel(cancelId: OperationId, operationId: OperationId, nowMs: number): SessionEffect[] {
    if (this.#current?.operationId !== operationId) {
      return this.#answer(cancelId, { kind: 'complete' }, nowMs);
    }
    if (!this.#current.cancels.includes(cancelId)) this.#current.cancels.push(cancelId);
    return [{ kind: 'stop', operationId }];
  }

  #received(operationId: OperationId, acts: boolean, nowMs: number): SessionEffect[] {
    const finished = this.#record.finished.filter((each) => each.operationId !== operationId);
    if (finished.length === this.#record.finished.length) return [];
    const receivedIds = [...this.#record.receivedIds, operationId];
    this.#record = { ...this.#record, finished, receivedIds };
    return this.#record.handOff?.operationId === operationId
      ? this.#handOff(this.#record.handOff, acts, nowMs)
      : [this.#save()];
  }

  /** Invariant 7: that it acts is written down before it does. */
  #handOff(
    handOff: NonNullable<RunnerRecord['handOff']>,
    acts: boolean,
    nowMs: number,
  ): SessionEffect[] {
    const { handOff: _, ...rest } = this.#record;
    this.#record = acts ? { ...rest, handOff: { ...handOff, acting: true } } : rest;
    if (!acts) return [this.#save()];
    const { operationId, order } = handOff;
    return [
      this.#save(),
      { kind: 'crashPoint', name: 'runner.handingOff' },
      ...this.#answer(operationId, { kind: 'continuing', step: order.step, text: leaving }, nowMs),
      { kind: 'handOff', operationId, order },
    ];
  }

  #stageReached(operationId: OperationId, progress: string): SessionEffect[] {
    if (this.#record.outstanding?.operationId !== operationId) return [];
    this.#record = { ...this.#record, outstanding: { operationId, progress } };
    return [this.#save()];
  }

  #progressed(
    event: SessionEvent & { readonly kind: 'progressed' },
    nowMs: number,
  ): SessionEffect[] {
    const current = this.#current;
    if (current?.operationId !== event.operationId) return [];
    current.percent = event.percent;
    current.text = event.text;
    if (nowMs - this.#reportedAtMs < progressIntervalMs && nowMs >= this.#reportedAtMs) return [];
    return this.#sendProgress(nowMs);
  }

  /** Reported at once, because others decide by it. */
  #begun(operationId: OperationId, nowMs: number): SessionEffect[] {
    if (this.#current?.operationId !== operationId || this.#current.begun) return [];
    this.#current.begun = true;
    return this.#sendProgress(nowMs);
  }

  #ended(event: SessionEvent & { readonly kind: 'ended' }, nowMs: number): SessionEffect[] {
    const current = this.#current;
    if (current?.operationId !== event.operationId) return [];
    const finished: FinishedOperation = {
      operationId: event.operationId,
      report: reportOf(event.operationId, event.result, nowMs),
      ...(event.evidence === undefined
        ? {}
        : { evidence: create(agent.StepEvidenceSchema, event.evidence) }),
    };
    this.#current = undefined;
    const { outstanding: _, ...rest } = this.#record;
    this.#record = { ...rest, finished: [...rest.finished, finished] };
    if (event.handOff !== undefined) {
      const { operationId, handOff: order } = event;
      this.#record = { ...this.#record, handOff: { operationId, order, acting: false } };
    }
    return [
      this.#save(),
      ...sendFinished(finished),
      { kind: 'crashPoint', name: 'runner.reported' },
      ...current.cancels.flatMap((id) => this.#answer(id, { kind: 'complete' }, nowMs)),
    ];
  }

  /** An answer that is not kept: an agent that misses it asks again. */
  #answer(operationId: OperationId, result: Result, nowMs: number): SessionEffect[] {
    const report = reportOf(operationId, result, nowMs);
    return [{ kind: 'send', message: { case: 'report', value: report } }];
  }

  #sendProgress(nowMs: number): SessionEffect[] {
    const current = this.#current;
    if (current === undefined) return [];
    this.#reportedAtMs = nowMs;
    const { operationId, step, percent, text, begun } = current;
    const progress = { kind: 'continuing', step, percent, text } as const;
    return this.#answer(operationId, begun ? { ...progress, begun } : progress, nowMs);
  }

  #save(): SessionEffect {
    return { kind: 'save', record: this.#record };
  }
}

/** The end of an inspection. */
export function inspected(inventory: Inventory): Complete {
  return { kind: 'complete', observations: create(agent.ObservationsSchema, { inventory }) };
}

/** Invariant 2: a predecessor's operation is over, and its progress is unknown. */
function interruptOutstanding(record: RunnerRecord, nowMs: number): RunnerRecord {
  const { outstanding, ...rest } = record;
  if (outstanding === undefined) return record;
  const { operationId, progress } = outstanding;
  const message = 'the runner was restarted while it was at work on it';
  const lastProgress = progress === '' ? {} : { lastProgress: progress };
  const report = reportOf(
    operationId,
    { kind: 'failed', type: 'interrupted', message, ...lastProgress },
    nowMs,
  );
  return { ...rest, finished: [...rest.finished, { operationId, report }] };
}

function sendFinished(finished: FinishedOperation): SessionEffect[] {
  const { evidence, report } = finished;
  const sendReport: SessionEffect = { kind: 'send', message: { case: 'report', value: report } };
  if (evidence === undefined) return [sendReport];
  return [{ kind: 'send', message: { case: 'evidence', value: evidence } }, sendReport];
}

function reportOf(operationId: OperationId, result: Result, nowMs: number): agent.Report {
  return create(agent.ReportSchema, {
    operationId,
    time: timestampFromMs(nowMs),
    result: resultToWire(boundResult(result)),
  });
}

function conflict(reason: 'locked' | 'duplicate', message: string): Result {
  return { kind: 'retryAfter', reason, message, delayMs: lockedDelayMs };
}

function unsupported(message: string): Result {
  return { kind: 'failed', type: 'unsupported', message };
}
