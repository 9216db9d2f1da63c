/** How long each stage of a scenario took, from what the programs themselves wrote down. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { HostView } from './host-watch.ts';
import type { LabMachine } from './qemu.ts';
import type { Site } from './site.ts';

interface AgentLine {
  readonly time: string;
  readonly message?: string;
  readonly stage?: string;
  readonly mac?: string;
}

/** Prints the stages of every run of the host, and what the boots were made of. */
export function printStages({ lab, watch, findings }: Site, machine: LabMachine): void {
  findings.say('stage                                     begun at        took');
  const views = watch.history(machine.name);
  const origin = Date.parse(views[0]?.createTime ?? '');
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`.padStart(11);
  const row = (name: string, from: number, to: number): void => {
    findings.say(`${name.padEnd(38)} ${seconds(from - origin)} ${seconds(to - from)}`);
  };
  const agentLines = readAgentLines(join(lab.folder, 'agent.log'));
  const runs = lastViewOfRuns(views);
  for (const [index, run] of runs.entries()) {
    // The end of a run is not seen where the next one begins in the same revision.
    const next = runs[index + 1]?.startTime;
    const kind = run.kind.replace('RUN_KIND_', '').toLowerCase();
    for (const step of run.steps ?? []) {
      const endTime = step.endTime ?? next;
      if (step.startTime === undefined || endTime === undefined) continue;
      const [from, to] = [Date.parse(step.startTime), Date.parse(endTime)];
      row(`${kind}: ${step.name}`, from, to);
      if (step.name !== 'runner.await') continue;
      let before = from;
      for (const [name, at] of bootStages(agentLines, from, to)) {
        row(`    ${name}`, before, at);
        before = at;
      }
    }
  }
  const ends = runs.map((run) => Date.parse(run.endTime ?? run.startTime));
  row('all', origin, Math.max(origin, ...ends));
}

/** How long the first boot of the runner took, by stages, milliseconds since it was ordered. */
export function bootTimes({ lab, watch }: Site, machine: LabMachine): ReadonlyMap<string, number> {
  const agentLines = readAgentLines(join(lab.folder, 'agent.log'));
  for (const { steps = [] } of lastViewOfRuns(watch.history(machine.name))) {
    const waited = steps.find(({ name }) => name === 'runner.await');
    if (waited?.startTime === undefined || waited.endTime === undefined) continue;
    const [from, to] = [Date.parse(waited.startTime), Date.parse(waited.endTime)];
    return new Map(bootStages(agentLines, from, to).map(([name, at]) => [name, at - from]));
  }
  return new Map();
}

type Run = NonNullable<HostView['status']['run']>;

function lastViewOfRuns(views: readonly HostView[]): Run[] {
  const runs = new Map<string, Run>();
  for (const { status } of views)
    if (status.run !== undefined) runs.set(status.run.number, status.run);
  return [...runs.values()];
}

/** Moments of a boot between `from` and `to`, from the log of the agent. */
function bootStages(lines: readonly AgentLine[], from: number, to: number): [string, number][] {
  const NAMES: Readonly<Record<string, string>> = {
    dhcp: 'firmware to its first DHCP message',
    tftp: 'to the loader',
    script: 'to the boot script',
    file: 'to the last file asked for',
  };
  const stages = new Map<string, number>();
  for (const line of lines) {
    const at = Date.parse(line.time);
    if (at < from || at > to + 1000) continue;
    if (line.message === 'netboot' && line.stage !== undefined) {
      const name = NAMES[line.stage] ?? line.stage;
      if (line.stage === 'file' || !stages.has(name)) stages.set(name, at);
    }
    if (line.message === 'runner connected') stages.set('load, kernel, runner connected', at);
  }
  return [...stages].sort((a, b) => a[1] - b[1]);
}

function readAgentLines(path: string): AgentLine[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as AgentLine);
}
