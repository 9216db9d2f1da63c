/**
 * What the control plane says about hosts, as it says it: `rackwright host watch -o json` runs
 * beside a scenario and writes down every change.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';
import { logTail, until } from './processes.ts';
import type { Stack } from './stack.ts';

/** A step of a run, as the API shows it in JSON. */
export interface StepView {
  readonly name: string;
  readonly state: string;
  readonly attempt?: number;
  readonly startTime?: string;
  readonly endTime?: string;
  /** The name that its template gives it. */
  readonly title?: string;
  readonly exit?: { readonly code?: number; readonly lastOutput?: string };
  readonly error?: string;
  readonly shutdown?: {
    readonly deadline?: string;
    readonly outcome?: string;
    readonly duration?: string;
  };
}

/** A host, as the API shows it in JSON; what is empty is absent. */
export interface HostView {
  readonly name: string;
  readonly uid: string;
  readonly createTime: string;
  readonly status: {
    readonly state: string;
    readonly dirty?: boolean;
    readonly display?: string;
    readonly run?: {
      readonly kind: string;
      readonly number: string;
      /** The run of a workflow that it carries out. */
      readonly workflowRun?: string;
      readonly phase: string;
      readonly outcome?: string;
      readonly currentStep?: number;
      readonly steps?: readonly StepView[];
      readonly waiting?: {
        readonly reason: string;
        readonly message: string;
        readonly since: string;
      };
      readonly error?: { readonly type: string; readonly message: string };
      readonly startTime: string;
      readonly endTime?: string;
    };
    readonly lastError?: {
      readonly failure: {
        readonly type: string;
        readonly message: string;
        readonly detail?: string;
      };
      readonly run: string;
    };
    readonly image?: string;
    readonly claim?: { readonly by: string };
    readonly inventory?: { readonly devices?: readonly { readonly serial?: string }[] };
  };
}

/** All that was seen of the hosts so far. */
export interface HostWatch {
  /** Every view of the host, oldest first. */
  history(id: string): readonly HostView[];
  latest(id: string): HostView | undefined;
  /** Waits for a view, past ones of this run included; throws with the last view. */
  waitFor(
    id: string,
    what: string,
    limitMs: number,
    accept: (host: HostView) => boolean,
  ): Promise<HostView>;
}

/** Starts the watch. */
export function watchHosts(stack: Stack): HostWatch {
  const watcher = stack.startCli('host-watch', ['host', 'watch', '-o', 'json']);
  const seen = new Map<string, HostView[]>();
  const readNew = followLines(watcher.logFile);
  const takeIn = (): void => {
    for (const line of readNew()) {
      if (!line.startsWith('{')) continue; // words of the program
      const { host } = JSON.parse(line) as { host?: HostView };
      if (host === undefined) continue;
      const id = host.name.replace(/^hosts\//, '');
      const views = seen.get(id) ?? [];
      views.push(host);
      seen.set(id, views);
    }
  };
  const history = (id: string): readonly HostView[] => {
    takeIn();
    return seen.get(id) ?? [];
  };
  return {
    history,
    latest: (id) => history(id).at(-1),
    waitFor: async (id, what, limitMs, accept) => {
      let found: HostView | undefined;
      const from = Math.max(0, history(id).length - 1);
      const arrived = (): boolean => {
        found = history(id).slice(from).find(accept);
        if (found === undefined && !watcher.isRunning()) {
          throw new Error(`the watch has ended: ${logTail(watcher.logFile)}`);
        }
        return found !== undefined;
      };
      try {
        await until(what, limitMs, arrived);
      } catch (error) {
        const last = describeHost(history(id).at(-1));
        throw new Error(`${id}: ${error instanceof Error ? error.message : ''}; last: ${last}`, {
          cause: error,
        });
      }
      if (found === undefined) throw new Error('unreachable: it has arrived');
      return found;
    },
  };
}

/** A host in one line. */
export function describeHost(host: HostView | undefined): string {
  if (host === undefined) return 'never seen';
  const { state, dirty, run, lastError } = host.status;
  const step = run?.steps?.[run.currentStep ?? 0]?.name ?? '';
  const runWords = run === undefined ? [] : [run.kind, run.phase, run.outcome ?? '', step];
  const error = lastError === undefined ? '' : JSON.stringify(lastError.failure);
  const waiting = run?.waiting === undefined ? '' : JSON.stringify(run.waiting);
  return [state, dirty === true ? 'dirty' : '', ...runWords, waiting, error]
    .filter(Boolean)
    .join(' ')
    .replaceAll(/(HOST_STATE|RUN_KIND|RUN_PHASE|RUN_OUTCOME)_/g, '');
}

/** Answers, at each call, the whole lines that were added to a file since the last one. */
export function followLines(path: string): () => string[] {
  let at = 0;
  let rest = '';
  const decoder = new StringDecoder('utf8');
  return () => {
    const file = openSync(path, 'r');
    try {
      const fresh = Buffer.alloc(fstatSync(file).size - at);
      at += readSync(file, fresh, 0, fresh.length, at);
      const lines = (rest + decoder.write(fresh)).split('\n');
      rest = lines.pop() ?? '';
      return lines;
    } finally {
      closeSync(file);
    }
  };
}
