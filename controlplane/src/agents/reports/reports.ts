/**
 * The reports of one session: each is folded in when it has a slot, and acknowledged once its
 * changes are durable (R7).
 */
import type { agent, HostId, OperationId, RackId } from '@rackwright/messages';
import { type Clock, type CrashPoint, errorText, type Log } from '@rackwright/platform';
import type { Hosts } from '../../host/index.ts';
import { isBusy, isStoreUnavailable } from '../../records/index.ts';
import type { AcknowledgementMeter } from '../base/acknowledgement.ts';
import type { ReleaseSlot } from '../base/rack-slots.ts';
import type { SessionSink } from '../base/sink.ts';
import type { StepLogs } from '../base/step-logs.ts';
import { answerOf, Settlement, verdictWord } from './settlement.ts';

export interface ReportsDependencies {
  readonly hosts: Pick<Hosts, 'report' | 'fail' | 'hostIdOfUid'>;
  readonly log: Log;
  readonly clock: Pick<Clock, 'suspendAwareMs'>;
  readonly crashPoint: CrashPoint;
  readonly stepLogs?: Pick<StepLogs, 'ended'>;
  readonly onAcknowledged?: AcknowledgementMeter;
  /** As in `Platform`. */
  readonly elapsedMs?: () => number;
}

export class Reports {
  readonly #deps: ReportsDependencies;
  readonly #rackId: RackId;
  readonly #sink: SessionSink;
  readonly #settlement = new Settlement();
  readonly #awaited = new Set<OperationId>();

  constructor(deps: ReportsDependencies, rackId: RackId, sink: SessionSink) {
    this.#deps = deps;
    this.#rackId = rackId;
    this.#sink = sink;
  }

  /** Hello has announced a final report of this operation. */
  noteAnnounced(operationId: OperationId): void {
    this.#awaited.add(operationId);
  }

  /** Whether it was announced and has not come yet. */
  isAwaited(operationId: OperationId): boolean {
    return this.#awaited.has(operationId);
  }

  /**
   * Reports of one host are folded in order; reports of different hosts do not wait for each other.
   * Calls `over` once the report is acknowledged, or never will be.
   */
  fold(report: agent.Report, over: ReleaseSlot): void {
    const { clock, hosts, crashPoint, stepLogs } = this.#deps;
    const { elapsedMs = () => clock.suspendAwareMs() } = this.#deps;
    const cameMs = elapsedMs();
    if (report.sequence > 0n) this.#settlement.received(report.sequence);
    const hostId = hosts.hostIdOfUid(report.hostUid, this.#rackId);
    const folding =
      hostId === undefined
        ? Promise.resolve({ kind: 'notFound' as const })
        : hosts.report(hostId, report);
    folding
      .then((result) => {
        this.#awaited.delete(report.operationId);
        if (report.sequence === 0n) return;
        if (hostId !== undefined) stepLogs?.ended(report.hostUid, report.operationId);
        const settledUpTo = this.#settlement.answered(report.sequence);
        const value = answerOf(report, result, settledUpTo);
        this.#sink.send({ case: 'reportAnswer', value });
        crashPoint('cp.reportAcknowledged');
        const seconds = (elapsedMs() - cameMs) / 1_000;
        this.#deps.onAcknowledged?.(verdictWord(value.verdict), seconds);
      })
      .catch((error: unknown) => this.#couldNotFold(report, hostId, error))
      .catch((error: unknown) => this.breakOff(report, error))
      .finally(over);
  }

  /** Not acknowledged: the agent sends it again in its next session. */
  breakOff({ operationId }: Pick<agent.Report, 'operationId'>, error: unknown): void {
    const fields = { rack: this.#rackId, operation: operationId };
    this.#deps.log.warn(fields, 'a report could not be folded in; it will come again', error);
    this.#sink.end();
  }

  /**
   * When the store is unavailable, or other writers always win, the report stays unacknowledged. A
   * failure that no retry can repair ends the attempt; otherwise the report would come back forever
   * and disable the rack. Facts are dropped.
   */
  async #couldNotFold(
    report: agent.Report,
    hostId: HostId | undefined,
    error: unknown,
  ): Promise<void> {
    const { log, hosts } = this.#deps;
    if (isStoreUnavailable(error) || isBusy(error) || hostId === undefined) throw error;
    const fields = { rack: this.#rackId, host: hostId, operation: report.operationId };
    log.error(fields, 'a report cannot be folded in', error);
    if (report.operationId === '') return;
    const message = `the result could not be taken in: ${errorText(error).slice(0, 500)}`;
    const { operationId: id, hostUid } = report;
    const result = await hosts.fail(hostId, { id, hostUid }, 'internal', message);
    const settledUpTo = this.#settlement.answered(report.sequence);
    this.#sink.send({ case: 'reportAnswer', value: answerOf(report, result, settledUpTo) });
  }
}
