/** Logs once each option of a machine that cannot be decoded. */
import { type IgnoredOption, type Mac } from '@rackwright/dhcp';
import type { Clock, Log } from '@rackwright/platform';
import { LineBudget } from './line-budget.ts';

/** Machines' options that are remembered; beyond that they are reported again. */
const rememberedMax = 4_096;
const linesPerMinuteMax = 30;

export class IgnoredOptions {
  readonly #log: Log;
  readonly #lines: LineBudget;
  /** "MAC CODE" */
  readonly #reported = new Set<string>();

  constructor({ log, clock }: { readonly log: Log; readonly clock: Clock }) {
    this.#log = log;
    this.#lines = new LineBudget(clock, linesPerMinuteMax, 60_000);
  }

  tell(mac: Mac, ignored: readonly IgnoredOption[]): void {
    for (const { code, problem } of ignored) {
      const key = `${mac} ${code}`;
      if (this.#reported.has(key)) continue;
      if (this.#reported.size >= rememberedMax) this.#reported.clear();
      this.#reported.add(key);
      this.#lines.spend((suppressed) => {
        const fields = { mac, option: code, problem, suppressed };
        this.#log.warn(fields, 'a DHCP option that cannot be decoded is ignored');
      });
    }
  }
}
