/**
 * A service's reports about an order that it carries out later (DSP0266, 202; DSP0268, Task).
 *
 * A task is a hint. It may vanish with a restart of the BMC, or its number may belong to another
 * task by then: the result of the order is read back in any case.
 */
import { pause } from '@rackwright/platform';
import {
  type BmcFailed,
  type BmcFailureType,
  type BmcResult,
  failed,
  type OnUpdateProgress,
  transient,
} from '../driver.ts';
import type { ActCalls } from './acting.ts';
import type { AcceptedOrder, Get } from './conversation.ts';
import { type JsonObject, numberAt, objectsAt, pathOf, textAt } from './json.ts';

export interface TaskCalls extends ActCalls {
  /** Reads in a conversation of its own: a restart of the BMC ends every session. */
  readonly fresh: Get;
}

/** The object of a task. */
export interface TaskOf {
  /** For messages: "the update". */
  readonly name: string;
  readonly failsAs: BmcFailureType;
  /** It is waited for so long, by the clock of the calls. */
  readonly endMs: number;
  readonly pollMs: number;
}

/** Services answer a task, or name where to look for it. */
export function taskIn({ body, location }: AcceptedOrder): string | undefined {
  const isTask = textAt(body, '@odata.type')?.startsWith('#Task.') === true;
  return (isTask ? pathOf(body) : undefined) ?? location;
}

/** The outcome of the task: `completed`, `open` when it can no longer be seen, or the failure. */
export async function watchTask(
  path: string,
  { name: taskName, failsAs, endMs, pollMs }: TaskOf,
  tell: OnUpdateProgress,
  { clock, fresh, signal }: TaskCalls,
): Promise<'completed' | 'open' | BmcResult<never>> {
  let named: string | undefined;
  let lastState = '';
  for (;;) {
    const task = await fresh(path);
    if (signal?.aborted === true) return transient('cancelled', `${taskName} is not waited for`);
    if (task.kind === 'failed') return isGone(task) ? 'open' : task;
    if (task.kind === 'ok') {
      const { body } = task.value;
      const state = textAt(body, 'TaskState');
      const name = `${textAt(body, 'Id') ?? ''} ${textAt(body, 'StartTime') ?? ''}`;
      named ??= name;
      // A monitor that has answered for good, or another's task in its place.
      if (state === undefined || name !== named) return 'open';
      if (state === 'Completed') return 'completed';
      if (failedStates.has(state)) {
        return failed(failsAs, `${taskName} has failed: its task ended as ${state}`, textIn(body));
      }
      const percent = Math.min(Math.max(numberAt(body, 'PercentComplete') ?? 0, 0), 100);
      lastState = `${state}, ${percent} %`;
      tell(Math.round(percent), state);
    }
    const leftMs = endMs - clock.suspendAwareMs();
    if (leftMs <= 0) return failed('stillPending', `${taskName} has not ended in time`, lastState);
    await pause(clock, Math.min(pollMs, leftMs), signal);
  }
}

/** DSP0268, Task: states that end it. */
const failedStates: ReadonlySet<string> = new Set(['Exception', 'Killed', 'Cancelled']);

function textIn(body: JsonObject): string {
  const messages = objectsAt(body, 'Messages').slice(0, 4);
  const texts = messages.map((one) => textAt(one, 'Message') ?? textAt(one, 'MessageId') ?? '');
  return texts.join('; ').slice(0, 512);
}

/** Gone with a restart, deleted after its end, or a monitor that ends without a body. */
function isGone({ type }: BmcFailed): boolean {
  return type === 'unsupported' || type === 'protocol' || type === 'malformed';
}
