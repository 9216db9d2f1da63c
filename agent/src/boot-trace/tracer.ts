/**
 * Follows the boots into the runner that the control plane has ordered, and reports each.
 *
 * T1 A boot whose runner arrives is reported with that runner and needs no report of its own. A
 *    stalled boot is reported once, and once more before its grant ends if anything happened since.
 * T2 Bounded: beyond `bootsMax` the oldest boot is forgotten without a report. A boot is forgotten
 *    with its grant.
 * T3 Reports are for people only: neighbours can send packets with the address of a host.
 */

import type { MessageInitShape } from '@bufbuild/protobuf';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  BootAsker,
  BootStepKind,
  type BootStepSchema,
  type BootTrace,
  BootTraceSchema,
  BootTransport,
  type HostUid,
  type OperationId,
} from '@rackwright/messages';
import type { Cancel, Clock } from '@rackwright/platform';
import type { BootEvent } from '../boot/index.ts';
import {
  afterEvent,
  type Waterfall,
  type WaterfallEvent,
  type WaterfallStage,
  type WaterfallStep,
} from './waterfall.ts';

/** The permission under which a boot goes. */
export interface TracedGrant {
  readonly hostUid: HostUid;
  readonly operationId: OperationId;
  readonly macs: readonly string[];
  /** Wall time, milliseconds. */
  readonly openedAtMs: number;
  readonly expiresAtMs: number;
}

export interface BootTracerLimits {
  readonly bootsMax: number;
  /** A boot without any event for this long counts as stalled. */
  readonly quietMs: number;
  /** A boot is reported this long before its grant ends, or a tenth of the grant's time before. */
  readonly beforeEndMs: number;
}

export const defaultBootTracerLimits: BootTracerLimits = {
  bootsMax: 1_024,
  quietMs: 180_000,
  beforeEndMs: 10_000,
};

export interface BootTracerParts {
  readonly clock: Pick<Clock, 'nowMs' | 'after'>;
  /** The grant of an operation, also of an earlier start of the agent. */
  readonly grantOf: (operationId: OperationId) => TracedGrant | undefined;
  readonly tell: (hostUid: HostUid, trace: BootTrace) => void;
  /**
   * The last lines of the host's console in the boot of an operation; absent: no console is heard.
   */
  readonly screenOf?: (operationId: OperationId) => readonly string[];
  /** The time of a boot is nearly over, and nothing at all was seen of its host. */
  readonly onUnseen: (grant: TracedGrant) => void;
  readonly limits: BootTracerLimits;
}

interface Boot {
  readonly grant: TracedGrant;
  steps: Waterfall;
  mac: string;
  givesAddresses: boolean;
  lastMs: number;
  /** The steps of the latest report. */
  reported: Waterfall | undefined;
  /** The screen lines of the latest report. */
  reportedScreen: string;
  /** The runner has arrived: nothing more is reported. */
  over: boolean;
  cancel: Cancel;
}

export class BootTracer {
  readonly #parts: BootTracerParts;
  readonly #boots = new Map<OperationId, Boot>();

  constructor(parts: BootTracerParts) {
    this.#parts = parts;
  }

  /** A grant has become durable. It ends the trace of an earlier boot of the host. */
  beginTrace(grant: TracedGrant): void {
    this.forgetHost(grant.hostUid);
    this.#follow(grant);
  }

  addEvent({ operationId, mac, givesAddresses, ...event }: BootEvent): void {
    const boot = this.#bootOf(operationId);
    if (boot === undefined || boot.over) return;
    boot.mac = mac;
    boot.givesAddresses ||= givesAddresses === true;
    this.#add(boot, event);
  }

  /** A runner that showed the boot's token was not taken. */
  addRefusal(operationId: OperationId, problem: string): void {
    const boot = this.#bootOf(operationId);
    if (boot === undefined || boot.over) return;
    this.#add(boot, { ...runnerEvent, kind: 'came', problem });
  }

  /**
   * The runner has arrived. Returns the boot, to be reported with the runner. Undefined: it was
   * reported already, or it is unknown.
   */
  finish(operationId: OperationId): BootTrace | undefined {
    const boot = this.#bootOf(operationId);
    if (boot === undefined || boot.over) return undefined;
    this.#add(boot, { ...runnerEvent, kind: 'came' });
    this.#add(boot, { ...runnerEvent, kind: 'sent' });
    boot.over = true;
    return traceOf(boot);
  }

  forgetHost(hostUid: HostUid): void {
    for (const [operationId, { grant }] of this.#boots) {
      if (grant.hostUid === hostUid) this.#drop(operationId);
    }
  }

  stop(): void {
    for (const operationId of [...this.#boots.keys()]) this.#drop(operationId);
  }

  #bootOf(operationId: OperationId): Boot | undefined {
    const known = this.#boots.get(operationId);
    if (known !== undefined) return known;
    const grant = this.#parts.grantOf(operationId);
    return grant === undefined ? undefined : this.#follow(grant);
  }

  #follow(grant: TracedGrant): Boot | undefined {
    const { clock, limits } = this.#parts;
    const nowMs = clock.nowMs();
    if (nowMs >= grant.expiresAtMs) return undefined;
    const boot: Boot = {
      ...{ grant, steps: [], mac: '', givesAddresses: false, lastMs: nowMs },
      ...{ reported: undefined, reportedScreen: '', over: false, cancel: () => undefined },
    };
    this.#boots.set(grant.operationId, boot);
    this.#wait(boot);
    const oldest = this.#boots.keys().next().value;
    if (this.#boots.size > limits.bootsMax && oldest !== undefined) this.#drop(oldest);
    return boot;
  }

  #add(boot: Boot, event: WaterfallEvent): void {
    boot.lastMs = this.#parts.clock.nowMs();
    boot.steps = afterEvent(boot.steps, event, boot.lastMs);
  }

  /** Waits until the boot may be stalled, its time is nearly over, or over. */
  #wait(boot: Boot): void {
    const { clock } = this.#parts;
    const nowMs = clock.nowMs();
    const nextMs = this.#timesOf(boot).find((atMs) => atMs > nowMs);
    if (nextMs === undefined) return this.#drop(boot.grant.operationId);
    boot.cancel = clock.after(nextMs - nowMs, () => this.#observe(boot));
  }

  #timesOf({ grant, lastMs, reported }: Boot): readonly number[] {
    const { quietMs } = this.#parts.limits;
    const lastCallMs = this.#lastCallMs(grant);
    const quietAtMs = lastMs + quietMs;
    const isFirst = reported === undefined && quietAtMs < lastCallMs;
    return [...(isFirst ? [quietAtMs] : []), lastCallMs, grant.expiresAtMs];
  }

  #lastCallMs({ openedAtMs, expiresAtMs }: TracedGrant): number {
    const tenthMs = (expiresAtMs - openedAtMs) / 10;
    return expiresAtMs - Math.min(this.#parts.limits.beforeEndMs, tenthMs);
  }

  #observe(boot: Boot): void {
    const { clock, limits, onUnseen } = this.#parts;
    const nowMs = clock.nowMs();
    if (!boot.over) {
      const isLast = nowMs >= this.#lastCallMs(boot.grant);
      const isStill = nowMs >= boot.lastMs + limits.quietMs;
      const isNews =
        boot.reported !== boot.steps || boot.reportedScreen !== this.#screenOf(boot).join('\n');
      if (isLast ? isNews : isStill && boot.reported === undefined) this.#tell(boot);
      if (isLast && boot.steps.length === 0 && nowMs < boot.grant.expiresAtMs) onUnseen(boot.grant);
    }
    this.#wait(boot);
  }

  #tell(boot: Boot): void {
    const screen = this.#screenOf(boot);
    boot.reported = boot.steps;
    boot.reportedScreen = screen.join('\n');
    this.#parts.tell(boot.grant.hostUid, traceOf(boot, screen));
  }

  #screenOf({ grant }: Boot): readonly string[] {
    return this.#parts.screenOf?.(grant.operationId) ?? [];
  }

  #drop(operationId: OperationId): void {
    this.#boots.get(operationId)?.cancel();
    this.#boots.delete(operationId);
  }
}

const runnerEvent = { stage: 'runner', program: 'system', bytes: 0, problem: '' } as const;

function traceOf(boot: Boot, screen: readonly string[] = []): BootTrace {
  const { grant, mac, steps, givesAddresses } = boot;
  return create(BootTraceSchema, {
    lastScreen: [...screen],
    ...{ operationId: grant.operationId, mac, givesAddresses },
    startTime: timestampFromMs(grant.openedAtMs),
    steps: steps.map(stepOf),
  });
}

const kinds: Readonly<Record<WaterfallStage, BootStepKind>> = {
  discover: BootStepKind.DISCOVER,
  offer: BootStepKind.OFFER,
  request: BootStepKind.REQUEST,
  ack: BootStepKind.ACK,
  loader: BootStepKind.LOADER,
  script: BootStepKind.SCRIPT,
  kernel: BootStepKind.KERNEL,
  initrd: BootStepKind.INITRD,
  runner: BootStepKind.RUNNER,
};

const askers: Readonly<Record<WaterfallStep['program'], BootAsker>> = {
  firmware: BootAsker.FIRMWARE,
  loader: BootAsker.LOADER,
  system: BootAsker.SYSTEM,
};

const transports = { tftp: BootTransport.TFTP, http: BootTransport.HTTP } as const;

function stepOf(step: WaterfallStep): MessageInitShape<typeof BootStepSchema> {
  const { stage, program, firstMs, lastMs, count, endMs, bytes, transport, problem } = step;
  return {
    ...{ kind: kinds[stage], asker: askers[program], count, bytes: BigInt(bytes), problem },
    firstTime: timestampFromMs(firstMs),
    lastTime: timestampFromMs(lastMs),
    ...(endMs === undefined ? {} : { endTime: timestampFromMs(endMs) }),
    ...(transport === undefined ? {} : { transport: transports[transport] }),
  };
}
