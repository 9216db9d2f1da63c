/** Turns progress into lines of text of a given width. Pure. */
import type { HostProgress, RackProgress } from './progress.ts';

export interface Picture {
  readonly racks: readonly RackProgress[];
  readonly hosts: readonly HostProgress[];
  readonly elapsedMs: number;
  /** One line below everything: what a person can do. */
  readonly footer: string;
}

/** Below this a row has no room for a bar and words. */
export const columnsMin = 60;

const barMin = 8;
const barMax = 28;
const stateColumns = 16;
const gap = '  ';

export type Colour = 'green' | 'red' | 'cyan' | 'dim' | 'bold';

const codes: Readonly<Record<Colour, number>> = { green: 32, red: 31, cyan: 36, dim: 2, bold: 1 };

/** The picture as lines of at most `columns` columns, in colour on request. */
export function paint(picture: Picture, columns: number, inColour: boolean): string[] {
  const tint = (colour: Colour, text: string) =>
    inColour && text !== '' ? `\x1b[${codes[colour]}m${text}\x1b[0m` : text;
  const racks = picture.racks.map(({ name, isConnected }) =>
    isConnected ? tint('green', `${name} connected`) : tint('red', `${name} away`),
  );
  const nameColumns = Math.max(4, ...picture.hosts.map(({ name }) => name.length));
  const rackColumns = Math.max(2, ...picture.hosts.map(({ rack }) => rack.length));
  const fixed = nameColumns + rackColumns + stateColumns + 5 * gap.length;
  const bar = Math.min(Math.max(Math.floor((columns - fixed) / 3), barMin), barMax);
  const detailColumns = Math.max(columns - fixed - bar - 1, 0);
  const rows = picture.hosts.map((host) => {
    const colour = host.mood === 'done' ? 'green' : host.mood === 'troubled' ? 'red' : 'cyan';
    return [
      '',
      fit(host.name, nameColumns),
      tint('dim', fit(host.rack, rackColumns)),
      tint(colour, barOf(host.fraction, bar)),
      tint(colour, fit(host.state, stateColumns)),
      tint(host.mood === 'troubled' ? 'red' : 'dim', fit(host.detail, detailColumns).trimEnd()),
    ]
      .join(gap)
      .trimEnd();
  });
  const time = clockOf(picture.elapsedMs);
  const head = `${gap}${tint('bold', time)}${gap}agents: ${racks.join(', ')}`;
  const footer =
    picture.footer === '' ? [] : [`${gap}${fit(picture.footer, columns - 3).trimEnd()}`];
  return ['', head, ...rows, ...footer];
}

/** One line for a change, for outputs that cannot be painted over. */
export function lineOf(host: HostProgress, elapsedMs: number): string {
  const percent = `${Math.floor(host.fraction * 100)} %`.padStart(5);
  return `${seconds(elapsedMs)}  ${host.name}  ${percent}  ${host.state}  ${host.detail}`.trimEnd();
}

/** "12.3 s", right-aligned. */
export function seconds(elapsedMs: number): string {
  return `${(elapsedMs / 1_000).toFixed(1)} s`.padStart(7);
}

function clockOf(elapsedMs: number): string {
  const whole = Math.floor(elapsedMs / 1_000);
  const pair = (value: number) => String(value).padStart(2, '0');
  return `${pair(Math.floor(whole / 60))}:${pair(whole % 60)}`;
}

function barOf(fraction: number, columns: number): string {
  const full = Math.round(fraction * columns);
  return `${'█'.repeat(full)}${'░'.repeat(columns - full)}`;
}

/** Exactly so many columns: padded, or cut. Without line breaks. */
function fit(text: string, columns: number): string {
  return clipLine(text.replace(/\s+/g, ' '), columns).padEnd(columns);
}

/** At most so many columns, with an ellipsis for the rest. */
export function clipLine(line: string, columns: number): string {
  if (line.length <= columns) return line;
  return columns < 2 ? line.slice(0, columns) : `${line.slice(0, columns - 1)}…`;
}
