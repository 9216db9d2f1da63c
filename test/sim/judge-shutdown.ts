/**
 * The judge's rules about systems that are to shut down, by the machines' own logs:
 * G1 what runs from the disk of a host in use is not forced off before the deadline that its order
 * named first, unless somebody said so, or its BMC or the machine left nothing else; G3 where a run
 * says that the power is off, it is off. G2, that a soft off switches nothing on, the machine says.
 */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { DeletionMode, HostState, type Run, ShutdownMode, type store } from '@rackwright/messages';
import { type JudgedHost, type JudgeParts, machineOf } from './judged.ts';
import type { PowerEvent } from './machine.ts';

/** How long after its order left the record a power command may still reach the machine. */
const powerSlackMs = 30_000;
/** Between the two clocks that a deadline goes through, both by whole milliseconds. */
const clockSlackMs = 1_000;

interface OffOrder {
  readonly id: string;
  readonly address: string;
  /** Simulated time; undefined: it says that the system is forced at once. */
  readonly deadlineMs: number | undefined;
  /** Somebody's system runs there, and nobody has said that it is to be forced. */
  readonly mustAsk: boolean;
  /** Undefined while it stands in the record. */
  leftMs: number | undefined;
}

/** Of one shutdown of one step. */
interface KnownShutdown {
  firstMs: number;
  /** A person has ended the wait. */
  skipped: boolean;
}

export class ShutdownJudge {
  readonly #parts: JudgeParts;
  readonly #found: (rule: string, text: string) => void;
  /** By host uid. */
  readonly #orders = new Map<string, OffOrder[]>();
  readonly #shutdowns = new Map<string, KnownShutdown>();
  /** Runs that began on a host in use whose spec forces nobody, by uid and number. */
  readonly #mustAsk = new Set<string>();
  #backUntilMs = -1;
  #powerRead = 0;

  constructor(parts: JudgeParts, found: (rule: string, text: string) => void) {
    this.#parts = parts;
    this.#found = found;
  }

  /** The store went back: for a while machines still do what stands there no more. */
  restored(forMs: number): void {
    this.#backUntilMs = this.#parts.view.heap.nowMs + forMs;
  }

  /** A host's record was written. */
  changed(before: store.HostRecord | undefined, host: JudgedHost): void {
    const { record } = host;
    const uid = record.host?.uid ?? '';
    const run = record.host?.status?.run;
    if (run !== undefined) this.#noteRun(before, record, run);
    this.#noteOrder(uid, record, run);
    this.#judgeEnd(before, host, run);
  }

  #noteRun(before: store.HostRecord | undefined, record: store.HostRecord, run: Run): void {
    if (before?.host?.status?.run?.number === run.number) return;
    const { spec, status } = (before ?? record).host ?? {};
    const isUsed = status?.state === HostState.PROVISIONED || status?.state === HostState.EXTERNAL;
    const isForced = spec?.shutdown?.mode === ShutdownMode.FORCE;
    if (isUsed && !isForced) this.#mustAsk.add(`${record.host?.uid}/${run.number}`);
  }

  /** Those of a host that may still act, but for `present` those that have just left it. */
  #ordersOf(uid: string, present: string | undefined): OffOrder[] {
    const { nowMs } = this.#parts.view.heap;
    const orders = (this.#orders.get(uid) ?? []).filter(
      ({ leftMs }) => leftMs === undefined || nowMs - leftMs <= powerSlackMs,
    );
    for (const order of orders) if (order.id !== present) order.leftMs ??= nowMs;
    this.#orders.set(uid, orders);
    return orders;
  }

  #noteOrder(uid: string, record: store.HostRecord, run: Run | undefined): void {
    const slot = record.operation?.sentTo === undefined ? undefined : record.operation.operation;
    const orders = this.#ordersOf(uid, slot?.id);
    const key = `${uid}/${run?.number}`;
    const ofStep = `${key}/${shutdownName(run)}`;
    const known = this.#shutdowns.get(ofStep);
    const isSkipped = record.change?.cause.includes('skipWait requested') === true;
    if (known !== undefined && isSkipped) known.skipped = true;
    if (slot?.kind.case !== 'setPower' || slot.kind.value.on !== false) return;
    if (orders.some(({ id }) => id === slot.id)) return;
    const { bmc, shutdownDeadline } = slot.kind.value;
    const wallStartMs = this.#parts.view.wallStartMs;
    const deadlineMs = shutdownDeadline && timestampMs(shutdownDeadline) - wallStartMs;
    const isForced = record.host?.status?.deletion?.mode === DeletionMode.FORCE;
    const mustAsk = this.#mustAsk.has(key) && !isForced;
    const id = slot.id;
    orders.push({ id, address: bmc?.address ?? '', deadlineMs, mustAsk, leftMs: undefined });
    if (deadlineMs !== undefined) this.#judgeWait(id, ofStep, deadlineMs, { isForced });
  }

  /** G1 */
  #judgeWait(
    id: string,
    ofStep: string,
    deadlineMs: number,
    { isForced }: { readonly isForced: boolean },
  ): void {
    const known = this.#shutdowns.get(ofStep);
    if (known === undefined) this.#shutdowns.set(ofStep, { firstMs: deadlineMs, skipped: false });
    else if (deadlineMs > known.firstMs) this.#found('G1', `${id} waits longer than was said`);
    else if (deadlineMs < known.firstMs && !known.skipped && !isForced && !this.#isBack()) {
      this.#found('G1', `${id} waits less than was said, and nobody has ended the wait`);
    }
  }

  /** G3. */
  #judgeEnd(before: store.HostRecord | undefined, host: JudgedHost, run: Run | undefined): void {
    const was = before?.host?.status?.run;
    const same = was?.number === run?.number ? was : undefined;
    for (const [index, { shutdown }] of (run?.steps ?? []).entries()) {
      if (shutdown?.duration === undefined) continue;
      const wasTold = same?.steps[index]?.shutdown?.duration !== undefined;
      if (wasTold) continue;
      this.#parts.view.count('shutdown told');
      const machine = machineOf(this.#parts.machines, host);
      if (machine?.isOn() !== true || this.#isBack()) continue;
      if (this.#isOnByBmc(machine.name)) {
        this.#found('G3', `${host.key}: ${machine.name} is on, not off`);
      }
    }
  }

  #isOnByBmc(machine: string): boolean {
    const { power } = this.#parts.logs;
    return power.findLast((event) => event.machine === machine && event.on)?.by === 'bmc';
  }

  look(): void {
    const { power } = this.#parts.logs;
    for (; this.#powerRead < power.length; this.#powerRead++) {
      const event = power[this.#powerRead];
      if (event?.by === 'bmc' && !event.on && event.ran === 'disk') this.#judgeForced(event);
    }
  }

  /** G1. */
  #judgeForced(event: PowerEvent): void {
    const { atMs, via } = event;
    const machine = this.#parts.machines.get(event.machine);
    if (machine === undefined || this.#isBack() || machine.manners.bmc !== 'taken') return;
    const { power } = this.#parts.logs;
    const cameOn = power.findLast((each) => each.machine === machine.name && each.on);
    // Who did not see who switched it on cannot know what runs.
    if (cameOn?.by !== 'bmc') return;
    const orders = [...this.#orders.values()].flat().filter(({ address }) => address === via);
    const isDue = ({ deadlineMs, mustAsk }: OffOrder) =>
      deadlineMs === undefined ? !mustAsk : atMs >= deadlineMs - clockSlackMs;
    if (orders.length === 0 || orders.some(isDue)) {
      if (orders.some(({ deadlineMs }) => deadlineMs !== undefined)) {
        this.#parts.view.count('forced at its deadline');
      }
      return;
    }
    const ids = orders.map(({ id, deadlineMs }) => `${id} until ${deadlineMs}`).join(', ');
    this.#found('G1', `${machine.name} was forced off too early (${ids})`);
  }

  #isBack(): boolean {
    return this.#parts.view.heap.nowMs < this.#backUntilMs;
  }
}

/** Of the step under way: which one, and when it began to wait. */
function shutdownName(run: Run | undefined): string {
  const start = run?.steps[run.currentStep]?.shutdown?.startTime;
  return `${run?.currentStep}/${start === undefined ? '' : timestampMs(start)}`;
}
