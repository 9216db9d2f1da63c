/** One order to a runner: offered until the runner knows it, stopped by Cancel or its deadline. */
import { agent, type OperationId } from '@rackwright/messages';
import type { Cancel, Clock } from '@rackwright/platform';
import type { Continuing, FailedAttempt, FinalResult } from '@rackwright/results';
import { operationTrace, traceparentOf } from '@rackwright/trace';
import type { OperationContext, SessionBrake } from '../session/index.ts';
import type { BeginDecision, ImageOfOrder, RunnerLink, RunnerOrder } from './link.ts';

export interface OutstandingParts {
  readonly order: RunnerOrder;
  readonly context: OperationContext;
  readonly clock: Clock;
  /** It was ordered before the present start of the agent: the runner may have it. */
  readonly resumed: boolean;
  readonly limits: { readonly cancelGraceMs: number; readonly leaseRetryMs: number };
  /** The runner's live link, if there is one now. */
  readonly link: () => RunnerLink | undefined;
  /** Called once. */
  readonly onEnd: (result: FinalResult) => void;
}

/** How long after the end of Cancel the dispatcher still waits for the step's own end. */
const stragglerMs = 5_000;

/** How often a connected runner gets time to report that it is at work on an order. */
const unheardMax = 15;

const waitsForLease = 'waits for the work lease';

/** Our own Cancel needs an id towards the runner; this one can be no operation's. */
export function cancelOf(operationId: OperationId): string {
  return `${operationId}/cancel`;
}

/**
 * The result of an order that was stopped because its time was over. A runner does not know why it
 * is stopped, and reports that it was cancelled. A step that a person stopped stays cancelled.
 */
export function inItsTime(
  result: FinalResult,
  { remainingMs, signal }: Pick<OperationContext, 'remainingMs' | 'signal'>,
): FinalResult {
  if (result.kind !== 'failed' || result.type !== 'cancelled') return result;
  if (signal.aborted || remainingMs() > 0) return result;
  return { ...result, type: 'deadline', message: `its deadline has passed: ${result.message}` };
}

/** Longest timer: a later deadline is checked again then. */
const timerMsMax = 24 * 3_600_000;

function onWire(
  { operation, order, secretEnvironment = {} }: RunnerOrder,
  image: ImageOfOrder | undefined,
  { imageEndpoint }: RunnerLink,
) {
  const trace = operationTrace(operation.id, operation.traceParent);
  const traceParent = trace === undefined ? '' : traceparentOf(trace);
  const value = { operationId: operation.id, kind: order, secretEnvironment, traceParent };
  if (image === undefined) return value;
  const { imageFile, phoneHomePath } = image;
  const callsHome = phoneHomePath !== '' && imageEndpoint !== '';
  return {
    ...{ ...value, imageFile },
    phoneHomeUrl: callsHome ? `http://${imageEndpoint}${phoneHomePath}` : '',
  };
}

/** One order on its way, from begun to its end. */
export class Outstanding {
  readonly order: RunnerOrder;
  readonly #parts: OutstandingParts;
  /** The runner has reported something about it: it need not be offered again. */
  #known = false;
  /** The order has gone to a runner, which may be at work on it. */
  #offered = false;
  #cancelling = false;
  /**
   * The brake under which the order was held back. If the runner then reports that it never got the
   * order, the attempt ends as a conflict; undefined: it fails.
   */
  #brake: SessionBrake | undefined = undefined;
  /** Times in a row that a runner was connected under a freeze and reported nothing about it. */
  #unheard = 0;
  #hasReportedWaiting = false;
  #over = false;
  #cancelDeadline: Cancel = () => {};
  #cancelOffer: Cancel = () => {};
  /** The runner's last report, for the message of an interrupted attempt. */
  lastHeard = 'nothing was heard of it';
  /** When its runner's stream ended last (wall time); undefined: it has not. */
  goneMs: number | undefined = undefined;
  readonly #onAbort = (): void => this.#askToStop();

  constructor(parts: OutstandingParts) {
    this.order = parts.order;
    this.#parts = parts;
  }

  start(): void {
    this.#watchDeadline();
    this.offer();
    const { signal } = this.#parts.context;
    if (signal.aborted) this.#askToStop();
    else signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** Sends the order to the runner, if it is there and may have it. */
  offer(): void {
    this.#cancelOffer();
    const link = this.#parts.link();
    if (this.#over || link === undefined) return;
    if (link.unreceived.has(this.order.operation.id)) return;
    if (this.#cancelling) {
      this.#sendCancel(link);
      return;
    }
    if (!this.#known && this.#isDestructive() && !this.#parts.context.isLeaseValid()) {
      return this.#offerLater();
    }
    const { image } = this.order;
    const own = image?.();
    if (image !== undefined && own === undefined) {
      // A runner that got the order before our present start reports it meanwhile.
      const { clock, limits } = this.#parts;
      this.#cancelOffer = clock.after(limits.leaseRetryMs, () => this.offer());
      return;
    }
    this.#offered = true;
    link.send({ case: 'order', value: onWire(this.order, own, link) });
  }

  /**
   * The journal says that it has begun, and the runner has no order yet. A freeze ends it, because
   * a freeze may last; the lease is waited for. A runner that may have got the order before our
   * present start reports its work as soon as it is connected; a runner that reports nothing is
   * asked.
   */
  #offerLater(): void {
    const { clock, limits, context } = this.#parts;
    const brake = context.brake();
    if (brake !== undefined && !this.#offered) {
      this.#brake = brake;
      if (!this.#parts.resumed) return this.end(this.#frozenOut(brake));
      this.#unheard += 1;
      if (this.#unheard > unheardMax) return this.#askToStop();
    } else this.#unheard = 0;
    this.#reportWaiting();
    this.#cancelOffer = clock.after(limits.leaseRetryMs, () => this.offer());
  }

  #frozenOut({ text: message }: SessionBrake): FinalResult {
    const delayMs = this.#parts.limits.leaseRetryMs;
    return { kind: 'retryAfter', reason: 'frozen', message, delayMs };
  }

  /** Whether the runner, which has the order, may begin to destroy at this moment (R11). */
  mayBegin(): BeginDecision {
    const { context } = this.#parts;
    if (this.#cancelling || this.#over) return { case: 'over', value: 'it is cancelled' };
    if (context.remainingMs() <= 0) return { case: 'over', value: 'its time is over' };
    const forMs = context.leaseLeftMs();
    if (forMs > 0) return { case: 'granted', value: true, forMs };
    return { case: 'wait', value: context.brake()?.text ?? waitsForLease };
  }

  receiveProgress(progress: Continuing): void {
    this.#known = true;
    this.#brake = undefined;
    const percent = progress.percent === undefined ? '' : ` ${progress.percent} %`;
    this.lastHeard = `last heard: ${progress.step}${percent} ${progress.text}`.trim();
    const { step, text, percent: part, hintMs } = progress;
    this.#parts.context.reportProgress({
      step,
      text,
      ...(this.#hasBegun(progress) ? { begun: true } : {}),
      ...(part === undefined ? {} : { percent: part }),
      ...(hintMs === undefined ? {} : { hintMs }),
    });
  }

  /**
   * A runner that writes an image reports itself when it begins: long before that it reads the
   * image, or waits. Any other step may have begun once it is reported.
   */
  #hasBegun({ begun }: Continuing): boolean {
    return begun === true || this.order.image === undefined;
  }

  /** Shows people that the runner is silent, and since when (wall time). */
  runnerAway(sinceMs: number): void {
    const since = new Date(sinceMs).toISOString();
    this.#parts.context.reportProgress({
      step: this.#step(),
      text: `the runner is not connected since ${since}; ${this.lastHeard}`,
    });
  }

  /**
   * The runner reports that its Cancel is over. The step's own end arrives before that, unless the
   * runner never had the step.
   */
  cancelOver(): void {
    this.#cancelOffer();
    this.#cancelOffer = this.#parts.clock.after(stragglerMs, () => {
      if (this.#brake !== undefined) return this.end(this.#frozenOut(this.#brake));
      const message = 'cancelled; the runner was not at work on it';
      const result: FailedAttempt = { kind: 'failed', type: 'cancelled', message };
      // No runner ever reported it; a runner that has begun keeps its end until it is received.
      this.end(this.#known ? result : this.#untouched(result));
    });
  }

  /** Its boot is over; its order is interrupted. */
  bootOver(why: string): void {
    const result: FailedAttempt = { kind: 'failed', type: 'interrupted', message: why };
    this.end({ ...(this.#offered ? result : this.#untouched(result)), detail: this.lastHeard });
  }

  /** No runner was at work on it, unless it got the order before our present start. */
  #untouched(result: FailedAttempt): FailedAttempt {
    const isImage = this.order.image !== undefined;
    return isImage && !this.#parts.resumed ? { ...result, disksUntouched: true } : result;
  }

  end(result: FinalResult): void {
    if (this.#over) return;
    this.#over = true;
    this.#cancelDeadline();
    this.#cancelOffer();
    this.#parts.context.signal.removeEventListener('abort', this.#onAbort);
    this.#parts.onEnd(inItsTime(result, this.#parts.context));
  }

  #step(): string {
    const { order } = this.order;
    return order.case === 'runStep' ? order.value.step : order.case;
  }

  /** Once: nothing changes while it waits. */
  #reportWaiting(): void {
    if (this.#hasReportedWaiting) return;
    this.#hasReportedWaiting = true;
    this.#parts.context.reportProgress({ step: this.#step(), text: waitsForLease });
  }

  #isDestructive(): boolean {
    const { order } = this.order;
    if (order.case !== 'runStep' || order.value.mode === agent.StepMode.CHECK) return false;
    // Unset counts as destructive (R8).
    return order.value.destructive !== false;
  }

  #askToStop(): void {
    this.#cancelling = true;
    const link = this.#parts.link();
    if (link !== undefined) this.#sendCancel(link);
  }

  #sendCancel(link: RunnerLink): void {
    const { id } = this.order.operation;
    const kind = { case: 'cancel', value: { operationId: id } } as const;
    link.send({ case: 'order', value: { operationId: cancelOf(id), kind } });
  }

  #watchDeadline(): void {
    const { clock, context } = this.#parts;
    const remainingMs = context.remainingMs();
    if (remainingMs === Number.POSITIVE_INFINITY) return;
    if (remainingMs > 0) {
      const delayMs = Math.min(remainingMs, timerMsMax);
      this.#cancelDeadline = clock.after(delayMs, () => this.#watchDeadline());
      return;
    }
    this.#askToStop();
    this.#cancelDeadline = clock.after(this.#parts.limits.cancelGraceMs, () => {
      const message = 'its deadline has passed and the runner does not say that it has stopped';
      const detail = this.lastHeard;
      const result: FailedAttempt = { kind: 'failed', type: 'deadline', message, detail };
      this.end(this.#offered ? result : this.#untouched(result));
    });
  }
}
