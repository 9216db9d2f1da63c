/**
 * Ends a run in which a test file has gone silent for longer than any of its tests may take.
 *
 * Vitest counts a test's timeout within the process that runs the test. It never interrupts a loop
 * without an await, and would wait for ever. The run's warden ends that process.
 */
import type { Reporter, TestModule } from 'vitest/node';

/** What a silent file may be busy with, milliseconds. */
export interface Patience {
  /** The longest import of any file. */
  readonly importMs: number;
  /** The longest hook of any file. */
  readonly hookMs: number;
  /** What a busy machine adds to a timeout. */
  readonly graceMs: number;
}

const lookMs = 1_000;
const namesMax = 5;

/** How long a file with these tests may say nothing, milliseconds; without any it is imported. */
export function silenceMaxMs(timeoutsMs: readonly number[], patience: Patience): number {
  const { importMs, hookMs, graceMs } = patience;
  return (timeoutsMs.length === 0 ? importMs : Math.max(hookMs, ...timeoutsMs)) + graceMs;
}

/** The reporter for vitest's configuration; `end` gets what to say, and ends the run. */
export function overdueReporter(patience: Patience, end: (words: string) => void): Reporter {
  const heardMs = new Map<TestModule, number>();
  const hear = (module: TestModule) => void heardMs.set(module, performance.now());
  const look = (): void => {
    for (const [module, atMs] of heardMs) {
      const silentMs = performance.now() - atMs;
      if (silentMs > silenceMaxMs(timeoutsOf(module), patience)) end(describe(module, silentMs));
    }
  };
  return {
    onTestRunStart: () => void setInterval(look, lookMs).unref(),
    onTestModuleQueued: hear,
    onTestModuleCollected: hear,
    onTestModuleStart: hear,
    onTestCaseReady: ({ module }) => hear(module),
    onTestCaseResult: ({ module }) => hear(module),
    onTestModuleEnd: (module) => void heardMs.delete(module),
  };
}

function timeoutsOf(module: TestModule): number[] {
  return [...module.children.allTests()].map(({ options }) => options.timeout ?? 0);
}

function describe(module: TestModule, silentMs: number): string {
  const open = [...module.children.allTests('pending')].map(({ fullName }) => `"${fullName}"`);
  const more = open.length > namesMax ? ` and ${open.length - namesMax} more` : '';
  const names = open.length === 0 ? 'its import' : open.slice(0, namesMax).join(', ') + more;
  const seconds = (silentMs / 1_000).toFixed(0);
  return `${module.relativeModuleId} says nothing for ${seconds} s: ${names} does not end.`;
}

/** Ends this process; for a run with a warden, which ends the others. */
export function endRun(words: string): void {
  console.error(`${words} The run is ended.`);
  process.exit(1);
}
