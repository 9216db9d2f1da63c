/**
 * Everything that the lab starts or makes is put on one list together with how to take it back.
 *
 * 1. What was made last is taken back first.
 * 2. A step that fails is reported and does not keep the others from running.
 * 3. It runs once, whether the lab ends well, by an exception or by a signal.
 */
import { errorText } from '@rackwright/platform';

/** A list of things to take back. */
export interface Undo {
  /** Puts `action` on the list. `label` is for the message when it fails. */
  add(label: string, action: () => Promise<void> | void): void;
  /** Takes everything back. A second call waits for the first. Answers what could not be. */
  run(): Promise<readonly string[]>;
}

export function createUndo(): Undo {
  const actions: { readonly label: string; readonly action: () => Promise<void> | void }[] = [];
  let running: Promise<readonly string[]> | undefined;
  const runAll = async (): Promise<readonly string[]> => {
    const failures: string[] = [];
    for (let next = actions.pop(); next !== undefined; next = actions.pop()) {
      try {
        await next.action();
      } catch (error) {
        failures.push(`${next.label}: ${errorText(error)}`);
      }
    }
    return failures;
  };
  return {
    add: (label, action) => actions.push({ label, action }),
    run: () => (running ??= runAll()),
  };
}
