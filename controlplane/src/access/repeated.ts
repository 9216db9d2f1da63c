/** Work that is repeated after a pause, as long as something runs. */
import type { Cancel, Clock } from '@rackwright/platform';

/**
 * Runs `work` every `pauseMs`, counted from its end; `work` never rejects. The returned function
 * stops the repetition.
 */
export function repeatEvery(clock: Clock, pauseMs: number, work: () => Promise<void>): Cancel {
  let isStopped = false;
  let cancel: Cancel = () => undefined;
  const arm = (): void => {
    cancel = clock.after(pauseMs, () => {
      void work().finally(() => {
        if (!isStopped) arm();
      });
    });
  };
  arm();
  return () => {
    isStopped = true;
    cancel();
  };
}
