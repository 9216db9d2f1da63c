/**
 * Ends a run in which a test file has gone silent for longer than any of its tests may take.
 *
 * Vitest counts a test's timeout within the process that runs the test. It never interrupts a loop
 * without an await, and would wait for ever. The run's warden ends that process.
 */
import type { Reporter } from 'vitest/node';

/** What a silent file may be busy with, milliseconds. */
export interface Patience {
  /** The longest import of any file. */
  readonly importMs: number;
  /** The longest hook of any file. */
  readonly hookMs: number;
  /** What a busy machine adds to a timeout. */
  readonly graceMs: number;
}

/** What is looked at of a test file; Vitest's `TestModule` is one. */
export interface TestFile {
  readonly moduleId: string;
  readonly relativeModuleId: string;
  readonly children: {
    allTests(state?: 'pending'): Iterable<{
      readonly fullName: string;
      readonly options: { readonly timeout?: number | undefined };
    }>;
  };
}

const lookMs = 1_000;
const namesMax = 5;

/** How long a file with these tests may say nothing, milliseconds; without any it is imported. */
export function silenceMsMax(timeoutsMs: readonly number[], patience: Patience): number {
  const { importMs, hookMs, graceMs } = patience;
  return (timeoutsMs.length === 0 ? importMs : Math.max(hookMs, ...timeoutsMs)) + graceMs;
}

/** The reporter for vitest's configuration; `end` gets what to say, and ends the run. */
export function overdueReporter(patience: Patience, end: (text: string) => void) {
  // By file: Vitest makes another object of a module once its tests are known.
  const heard = new Map<string, { readonly module: TestFile; readonly atMs: number }>();
  const begin = (module: TestFile) =>
    void heard.set(module.moduleId, { module, atMs: performance.now() });
  // It may tell of a test after its file has ended.
  const hear = (module: TestFile) => {
    if (heard.has(module.moduleId)) begin(module);
  };
  const look = (): void => {
    for (const { module, atMs } of heard.values()) {
      const silentMs = performance.now() - atMs;
      if (silentMs > silenceMsMax(timeoutsOf(module), patience)) end(describe(module, silentMs));
    }
  };
  return {
    onTestRunStart: () => void setInterval(look, lookMs).unref(),
    onTestModuleQueued: begin,
    onTestModuleCollected: hear,
    onTestModuleStart: hear,
    onTestCaseReady: ({ module }: { readonly module: TestFile }) => hear(module),
    onTestCaseResult: ({ module }: { readonly module: TestFile }) => hear(module),
    onTestModuleEnd: (module: TestFile) => void heard.delete(module.moduleId),
  } satisfies Reporter;
}

function timeoutsOf(module: TestFile): number[] {
  return [...module.children.allTests()].map(({ options }) => options.timeout ?? 0);
}

function describe(module: TestFile, silentMs: number): string {
  const open = [...module.children.allTests('pending')].map(({ fullName }) => `"${fullName}"`);
  const more = open.length > namesMax ? ` and ${open.length - namesMax} more` : '';
  const names = open.length === 0 ? 'its import' : open.slice(0, namesMax).join(', ') + more;
  const seconds = (silentMs / 1_000).toFixed(0);
  return `${module.relativeModuleId} says nothing for ${seconds} s: ${names} does not end.`;
}

/** Ends this process; for a run with a warden, which ends the others. */
export function endRun(text: string): void {
  console.error(`${text} The run is ended.`);
  process.exit(1);
}
