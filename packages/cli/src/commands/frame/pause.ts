/** A pause that ends with Ctrl-C. */
import type { CommandIo } from '../../command-io.ts';

/** Resolves after so long, or when the person leaves. */
export function pause({ clock, signal }: CommandIo, pauseMs: number): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      cancel();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const cancel = clock.after(pauseMs, end);
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
  });
}
