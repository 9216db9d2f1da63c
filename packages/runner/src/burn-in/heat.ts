/** The machine's temperature during a burn-in. */
import type { BurnInMachine } from '../machine/burn-in-machine.ts';
import type { StepContext } from '../steps/step.ts';

/** Between two looks at the sensors, milliseconds. */
const readEveryMs = 5_000;

export class TemperatureMonitor {
  readonly #clock: StepContext['clock'];
  readonly #machine: Pick<BurnInMachine, 'celsius'> | undefined;
  readonly #limit: number;
  #readMs = Number.NEGATIVE_INFINITY;
  #max: number | undefined;

  /** `limit` in degrees Celsius; 0: none. */
  constructor(
    { clock }: Pick<StepContext, 'clock'>,
    machine: Pick<BurnInMachine, 'celsius'> | undefined,
    limit: number,
  ) {
    this.#clock = clock;
    this.#machine = machine;
    this.#limit = limit;
  }

  /** Looks at the sensors now and then. Resolves with whether the machine is too hot to go on. */
  async read(): Promise<boolean> {
    const nowMs = this.#clock.suspendAwareMs();
    if (nowMs - this.#readMs >= readEveryMs) {
      this.#readMs = nowMs;
      this.note(await this.#machine?.celsius());
    }
    return this.isTooHot;
  }

  /** Notes the value of another sensor. */
  note(celsius: number | undefined): void {
    if (celsius !== undefined) this.#max = Math.max(celsius, this.#max ?? celsius);
  }

  /** The hottest of all looks; undefined: no sensor could be read. */
  get max(): number | undefined {
    return this.#max;
  }

  /** One of the looks found more than the limit. */
  get isTooHot(): boolean {
    return this.#limit !== 0 && this.#max !== undefined && this.#max > this.#limit;
  }

  /** For people, about a machine that is too hot. */
  get overText(): string {
    return `${this.#max} °C; at most ${this.#limit} °C are allowed`;
  }

  /** ", 61 °C", or nothing. */
  get text(): string {
    return this.#max === undefined ? '' : `, at most ${this.#max} °C`;
  }
}
