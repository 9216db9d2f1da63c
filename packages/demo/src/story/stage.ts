/** The shared parts of every act of the story. */
import type { Host } from '@rackwright/messages';
import type { Fleet } from '../fleet.ts';
import { eventually } from '../site/eventually.ts';
import type { Site } from '../site/site.ts';
import { seconds } from '../view/paint.ts';
import { timed, wrap } from '../view/wrap.ts';

export interface Stage {
  readonly site: Site;
  readonly fleet: Fleet;
  /** Columns to write in. */
  columns(): number;
  elapsedMs(): number;
  /** Shows text as it is, above the picture. */
  print(text: string): void;
}

/** The failed expectations; the demo fails with them. */
export class StoryFailure extends Error {}

export function expectThat(holds: boolean, otherwise: string): void {
  if (!holds) throw new StoryFailure(otherwise);
}

const indent = ' '.repeat(9);

/** The heading of an act. */
export function announce(stage: Stage, text: string): void {
  stage.print(`\n${timed(seconds(stage.elapsedMs()), text, stage.columns() - 1)}`);
}

/** A few lines below a heading. */
export function tell(stage: Stage, text: string): void {
  stage.print(wrap(text, stage.columns() - 1, indent));
}

/** A command line as a person types it. */
export function tellCommand(stage: Stage, args: readonly string[]): void {
  stage.print(`${indent}$ rackwright ${args.map(quoted).join(' ')}`);
}

function quoted(word: string): string {
  return /^[\w./:=@-]+$/.test(word) ? word : `'${word}'`;
}

/** The host once `holds` is true. */
export async function untilHost(
  { site }: Stage,
  id: string,
  condition: string,
  timeoutMs: number,
  holds: (host: Host) => boolean,
): Promise<Host> {
  return await eventually(`${id} to be ${condition}`, timeoutMs, async () => {
    const host = await site.clients.hosts.getHost({ name: `hosts/${id}` });
    return holds(host) ? host : undefined;
  });
}
