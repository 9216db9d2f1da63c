/**
 * Hears the serial consoles of hosts that boot into the runner, and keeps the last screen of each,
 * so that a failed boot shows its cause.
 *
 * C1 It listens from the power-on until the runner arrives or the boot's time is over. Then it
 *    releases the BMC.
 * C2 It never delays an action on the BMC, and ends nobody else's session: while the console is in
 *    use, or the BMC does other work, it tries again.
 * C3 Bounded: consoles at once, tries, and what is kept of each.
 */
import type { BmcConsole, OnConsoleOutput } from '@rackwright/bmc';
import type { HostUid, OperationId } from '@rackwright/messages';
import type { Cancel, Clock, Log } from '@rackwright/platform';
import { Screen } from './screen.ts';
import type { OpenConsole } from './shared-consoles.ts';

/** The boot whose console is heard. */
export interface ConsoleBoot {
  readonly hostUid: HostUid;
  /** The operation that has switched the host on. */
  readonly operationId: OperationId;
  /** Wall time, milliseconds. */
  readonly expiresAtMs: number;
}

export interface BootConsoleLimits {
  readonly consolesMax: number;
  readonly triesMax: number;
  readonly retryMs: number;
}

export const defaultBootConsoleLimits: BootConsoleLimits = {
  consolesMax: 32,
  triesMax: 60,
  retryMs: 15_000,
};

export interface BootConsoleParts {
  readonly clock: Pick<Clock, 'nowMs' | 'after'>;
  readonly log: Log;
  readonly limits: BootConsoleLimits;
}

interface ConsoleRecording {
  readonly boot: ConsoleBoot;
  readonly open: OpenConsole;
  readonly screen: Screen;
  readonly abort: AbortController;
  tries: number;
  console: BmcConsole | undefined;
  cancelRetry: Cancel;
  cancelEnd: Cancel;
}

export class BootConsoles {
  readonly #parts: BootConsoleParts;
  /** By the boot's operation. */
  readonly #heard = new Map<OperationId, ConsoleRecording>();

  constructor(parts: BootConsoleParts) {
    this.#parts = parts;
  }

  /** The host has been switched on to boot. This ends an earlier boot of it. */
  follow(boot: ConsoleBoot, open: OpenConsole): void {
    const { clock, limits, log } = this.#parts;
    this.forgetHost(boot.hostUid);
    const leftMs = boot.expiresAtMs - clock.nowMs();
    if (leftMs <= 0) return;
    if (this.#heard.size >= limits.consolesMax) {
      log.info({ hostUid: boot.hostUid }, 'too many consoles are heard already: not this one');
      return;
    }
    const heard: ConsoleRecording = {
      ...{ boot, open, screen: new Screen() },
      ...{ abort: new AbortController(), tries: 0, console: undefined },
      ...{ cancelRetry: () => undefined, cancelEnd: () => undefined },
    };
    this.#heard.set(boot.operationId, heard);
    heard.cancelEnd = clock.after(leftMs, () => this.over(boot.operationId));
    void this.#try(heard);
  }

  /** The last screen of this boot's console; empty: unknown. */
  lastScreen(operationId: OperationId): readonly string[] {
    return this.#heard.get(operationId)?.screen.lines() ?? [];
  }

  /** Its runner has come, or its time is over. */
  over(operationId: OperationId): void {
    const heard = this.#heard.get(operationId);
    if (heard === undefined) return;
    this.#heard.delete(operationId);
    heard.cancelRetry();
    heard.cancelEnd();
    heard.abort.abort();
    heard.console?.close();
  }

  forgetHost(hostUid: HostUid): void {
    for (const [operationId, { boot }] of this.#heard) {
      if (boot.hostUid === hostUid) this.over(operationId);
    }
  }

  stop(): void {
    for (const operationId of [...this.#heard.keys()]) this.over(operationId);
  }

  async #try(heard: ConsoleRecording): Promise<void> {
    const { log } = this.#parts;
    const { boot, screen, abort } = heard;
    heard.tries += 1;
    const hear: OnConsoleOutput = (bytes) => screen.write(bytes);
    const opened = await heard.open(hear, abort.signal);
    if (opened === undefined) return;
    if (opened.kind === 'ok') {
      if (abort.signal.aborted) return opened.value.close();
      heard.console = opened.value;
      await opened.value.ended;
      heard.console = undefined;
    } else if (opened.kind === 'failed') {
      const { type, message } = opened;
      log.info({ hostUid: boot.hostUid, type, message }, 'the serial console is not heard');
      return;
    }
    this.#again(heard);
  }

  #again(heard: ConsoleRecording): void {
    const { clock, limits } = this.#parts;
    if (heard.abort.signal.aborted || heard.tries >= limits.triesMax) return;
    heard.cancelRetry = clock.after(limits.retryMs, () => void this.#try(heard));
  }
}
