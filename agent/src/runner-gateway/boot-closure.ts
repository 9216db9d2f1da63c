/** Boots that take no order any more. */
import type { OperationId } from '@rackwright/messages';
import type { RetryAfter } from '@rackwright/results';

/**
 * Why a boot takes no order: its system has ended, two runners claim it, or a step has taken its
 * runner away. A boot that is only over is opened again by a runner that proves itself.
 */
export interface BootClosure {
  readonly kind: 'over' | 'disowned' | 'handedOff';
  /** For people. */
  readonly text: string;
}

/** Keeps the newest. */
export function rememberClosure(
  boots: Map<OperationId, BootClosure>,
  boot: OperationId,
  closure: BootClosure,
  max: number,
): void {
  boots.delete(boot);
  boots.set(boot, closure);
  const [oldest] = boots.keys();
  if (boots.size > max && oldest !== undefined) boots.delete(oldest);
}

/** The result of an order for such a boot. */
export function closedBoot(bootOperationId: OperationId, { text }: BootClosure): RetryAfter {
  const message = `boot ${bootOperationId} is over, boot the host again: ${text}`;
  return { kind: 'retryAfter', reason: 'invalidState', message, delayMs: 0 };
}
