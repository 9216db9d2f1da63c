/** Work that comes again after a pause for as long as something runs. */
import type { Cancel, Clock } from '@rackwright/platform';

/** Does `work` every `pauseMs`, counted from its end; it never rejects. Ends with the answer. */
export function repeated(clock: Clock, pauseMs: number, work: () => Promise<void>): Cancel {
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
