/** The speed of work on a device and its remaining time, as text. Pure but for the clock. */
import type { Clock } from '@rackwright/platform';

/** Before that the speed says nothing, milliseconds. */
const settleMs = 2_000;

export class TransferPace {
  readonly #clock: Pick<Clock, 'suspendAwareMs'>;
  readonly #totalBytes: number;
  /** The time of the first transfer: work before it says nothing of the speed. */
  #startMs: number | undefined;
  #bytes = 0;

  constructor(clock: Pick<Clock, 'suspendAwareMs'>, totalBytes: number) {
    this.#clock = clock;
    this.#totalBytes = totalBytes;
  }

  add(bytes: number): void {
    this.#startMs ??= this.#clock.suspendAwareMs();
    this.#bytes += bytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** 0 to 1. */
  get fraction(): number {
    return this.#totalBytes === 0 ? 1 : Math.min(1, this.#bytes / this.#totalBytes);
  }

  /** "180 MB/s, 31 h 2 min left"; empty while unknown. */
  text(): string {
    const elapsedMs = this.#clock.suspendAwareMs() - (this.#startMs ?? Number.POSITIVE_INFINITY);
    if (elapsedMs < settleMs || this.#bytes === 0) return '';
    const bytesPerMs = this.#bytes / elapsedMs;
    const leftMs = Math.max(0, this.#totalBytes - this.#bytes) / bytesPerMs;
    return `${speedText(bytesPerMs)}, ${roundedDurationText(leftMs)} left`;
  }
}

/** Bytes per millisecond are kB per second. */
function speedText(bytesPerMs: number): string {
  return bytesPerMs >= 1_000
    ? `${Math.round(bytesPerMs / 1_000)} MB/s`
    : `${Math.max(1, Math.round(bytesPerMs))} kB/s`;
}

/** "31 h 2 min", "5 min", "40 s". */
export function roundedDurationText(ms: number): string {
  const seconds = Math.ceil(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.ceil(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const rest = minutes % 60;
  return rest === 0 ? `${minutes / 60} h` : `${Math.floor(minutes / 60)} h ${rest} min`;
}
