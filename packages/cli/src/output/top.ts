/** How the fleet is shown as it is now. Pure. */
import { type CountHostsResponse, counted, type Freeze, type Host } from '@rackwright/messages';
import { problemText } from './host.ts';
import { barLine, workOf } from './progress.ts';
import { clean, fit } from './text.ts';

/** The result of one look. */
export interface FleetOverview {
  readonly server: string;
  readonly states: CountHostsResponse;
  readonly runs: CountHostsResponse;
  readonly faults: CountHostsResponse;
  /** Hosts with a run, and hosts with a fault: as many as fit. */
  readonly running: readonly Host[];
  readonly faulty: readonly Host[];
  readonly freeze: Freeze | undefined;
  /** Lines that there are. */
  readonly rows: number;
  /** Why this is an earlier result, and not the present one. */
  readonly trouble?: string;
}

/** Lines besides hosts: heading, states, blank lines and titles. */
const otherLines = 7;

/** The lines; `columns` is the terminal's width or undefined. */
export function topLines(
  seen: FleetOverview,
  nowMs: number,
  columns: number | undefined,
): string[] {
  const { server, states, runs, faults, freeze, trouble } = seen;
  const time = new Date(nowMs).toISOString().slice(11, 19);
  const room = Math.max(2, seen.rows - otherLines);
  const shownFaulty = Math.min(seen.faulty.length, Math.max(1, Math.floor(room / 2)));
  const shownRunning = Math.min(seen.running.length, Math.max(1, room - shownFaulty));
  const width = columns ?? 200;
  const lines = [
    `${server}  ${time} UTC  ${counted(states.total, 'host')}: ${groupsText(states)}`,
    ...(trouble === undefined ? [] : [`! not what is now: ${trouble}`]),
    ...(freeze === undefined ? [] : [`! frozen by ${freeze.by}: ${freeze.reason}`]),
    '',
    `RUNS  ${titleText(runs)}`,
    ...seen.running
      .slice(0, shownRunning)
      .map((host) => `  ${barLine(workOf(host, nowMs, undefined), width - 2)}`),
    ...moreLine(runs.total, shownRunning, "'run:*'"),
    '',
    `FAULTS  ${titleText(faults)}`,
    ...seen.faulty.slice(0, shownFaulty).map((host) => `  ${host.name}  ${problemText(host)}`),
    ...moreLine(faults.total, shownFaulty, "'fault:*'"),
  ];
  return lines.map((line) => (columns === undefined ? clean(line) : fit(clean(line), columns - 1)));
}

function titleText(count: CountHostsResponse): string {
  return count.total === 0 ? 'none' : `${counted(count.total, 'host')}: ${groupsText(count)}`;
}

/** "120 available, 8 new" */
function groupsText({ groups, groupsLeftOut }: CountHostsResponse): string {
  const words = groups.map(({ value, count }) => `${count} ${value || 'without'}`);
  return [...words, ...(groupsLeftOut > 0 ? [`${groupsLeftOut} more`] : [])].join(', ') || 'none';
}

function moreLine(total: number, shown: number, filter: string): string[] {
  if (total <= shown) return [];
  return [`  … and ${total - shown} more: rackwright host list --filter ${filter}`];
}
