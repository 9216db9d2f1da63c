/**
 * Templates as simulated people write them. The world knows what each source says without reading
 * it: the judge compares what machines do with that, and with nothing that production code made of
 * the source.
 */
import { createHash } from 'node:crypto';
import { imageReference } from './images.ts';

/** Where simulated webhooks are called. */
export const hooksUrl = 'http://hooks.sim/';
/** The program of this title ends with one code as often as with the other. */
export const probeTitle = 'probe';
export const probeFailure = 7;
/** A variable that has no default: without it nothing can be rendered. */
export const neededVariable = 'need';

export interface RecipeStep {
  readonly title: string;
  readonly does: Written['does'];
  /** May run again by itself after it was cut short. */
  readonly isSafe: boolean;
  readonly handOff: boolean;
  readonly retries: number;
  /** It runs only when that step ended with this code. */
  readonly after: { readonly title: string; readonly code: number } | undefined;
  readonly handler: boolean;
}

/** One source of a template. */
export interface Recipe {
  readonly templateId: string;
  readonly version: number;
  readonly source: string;
  readonly digest: string;
  readonly steps: readonly RecipeStep[];
}

/** What a program, a file or a call says of where it comes from. */
export interface Mark {
  readonly templateId: string;
  readonly version: number;
  readonly title: string;
}

/** The text of a mark, as it stands in scripts, files and bodies. */
export function markText({ templateId, version, title }: Mark): string {
  return `mark ${templateId} ${version} ${title}`;
}

/** Undefined where there is none. */
export function readMark(text: string): Mark | undefined {
  const [, templateId, version, title] = /^mark (\S+) (\d+) (\S+)/.exec(text) ?? [];
  if (templateId === undefined || title === undefined) return undefined;
  return { templateId, version: Number(version), title };
}

/** The command of this title asks, directly before it begins, whether it still may. */
export const burnTitle = 'burn';

interface Written {
  readonly title: string;
  readonly does: 'script' | 'command' | 'file' | 'webhook' | 'other';
  readonly more?: Record<string, unknown>;
  readonly after?: { readonly title: string; readonly code: number };
  readonly handler?: boolean;
}

const script = (title: string, more: Record<string, unknown> = {}): Written => ({
  ...{ title, does: 'script', more },
});
const safe = (title: string, more: Record<string, unknown> = {}): Written =>
  script(title, { idempotent: true, ...more });
const other = (title: string, more: Record<string, unknown>): Written => ({
  ...{ title, does: 'other', more },
});
const after = (title: string, code: number, step: Written): Written => ({
  ...step,
  after: { title, code },
});

const command = (title: string, more: Record<string, unknown> = {}): Written => ({
  ...{ title, does: 'command', more },
});

const harmless = { destructive: false };

/** What templates do: every kind of step that can be cut short, in several orders. */
const shapes: readonly (readonly Written[])[] = [
  [
    safe('one', { ...harmless, retries: 1 }),
    script('two', harmless),
    { title: 'tell', does: 'webhook', more: { retries: 1 } },
    after('one', 0, script('four', { ...harmless, retries: 2 })),
  ],
  [
    { title: 'note', does: 'file', more: harmless },
    other('again', { power: 'reboot' }),
    script('once', harmless),
    script('leave', { ...harmless, handOff: true }),
    safe('behind', harmless),
    { title: 'tell', does: 'webhook' },
  ],
  [
    script(probeTitle, { ...harmless, onFailure: 'continue' }),
    after(probeTitle, 0, safe('good', { ...harmless, retries: 1 })),
    after(probeTitle, probeFailure, script('bad', { ...harmless, onFailure: 'tidy' })),
    other('pause', { wait: '20s' }),
    script('last', { retries: 1, onFailure: 'tidy' }),
    { ...safe('tidy', harmless), handler: true },
  ],
  [
    other('look', { hold: 'see that the lamp is green' }),
    script('once', { ...harmless, timeout: '40s', onTimeout: 'continue', onFailure: 'hold' }),
    other('sel', { bmc: 'management.clear_event_log' }),
    script('leave', { handOff: true }),
  ],
  [
    command('look', { ...harmless, idempotent: true, retries: 1 }),
    command(burnTitle),
    command('after-burn', { ...harmless, onFailure: 'continue' }),
  ],
  [
    { title: 'tell', does: 'webhook', more: { retries: 2, onFailure: 'continue' } },
    other('pause', { wait: '5s' }),
    { title: 'once-more', does: 'webhook', more: { onFailure: 'tidy' } },
    { title: 'tidy', does: 'webhook', handler: true },
  ],
];

/** A source of this shape, for this template. */
export function makeRecipe(templateId: string, version: number, shape: number): Recipe {
  const written = shapes[shape % shapes.length] ?? [];
  const line = (step: Written) => `  - ${JSON.stringify(objectOf(step, templateId, version))}\n`;
  const linesOf = (handlers: boolean) =>
    written.filter(({ handler = false }) => handler === handlers).map(line);
  const handlers = linesOf(true);
  const needs = version % 6 === 5 ? `variables:\n  ${neededVariable}: { type: string }\n` : '';
  const source =
    `description: version ${version} of ${templateId}\ntimeout: 2h\n${needs}` +
    `steps:\n${linesOf(false).join('')}` +
    (handlers.length === 0 ? '' : `handlers:\n${handlers.join('')}`);
  const digest = createHash('sha256').update(source).digest('hex');
  return { templateId, version, source, digest, steps: written.map(stepOf) };
}

/** How many shapes there are. */
export const shapesCount = shapes.length;

function objectOf({ title, does, more, after: condition }: Written, id: string, version: number) {
  const mark = markText({ templateId: id, version, title });
  const action = {
    script: { script: mark },
    command: { command: { image: imageReference, arguments: [mark] } },
    file: { file: { path: `/etc/${title}`, content: mark } },
    webhook: { webhook: { url: `${hooksUrl}${id}/${title}`, body: mark } },
    other: {},
  }[does];
  const when = condition && { if: `steps.${condition.title}.exitCode == ${condition.code}` };
  return { name: title, ...action, ...more, ...when };
}

function stepOf({
  title,
  does,
  more = {},
  after: condition,
  handler = false,
}: Written): RecipeStep {
  return {
    ...{ title, does, handler, after: condition },
    // A file in the ramdisk may be written again.
    isSafe: does === 'file' || more['idempotent'] === true,
    handOff: more['handOff'] === true,
    retries: Number(more['retries'] ?? 0),
  };
}

/** Every source that people have written. */
export class TemplateBook {
  readonly #byDigest = new Map<string, Recipe>();
  #versions = 0;

  /** Another source, never written before. */
  write(templateId: string, shape: number): Recipe {
    this.#versions += 1;
    const recipe = makeRecipe(templateId, this.#versions, shape);
    this.#byDigest.set(recipe.digest, recipe);
    return recipe;
  }

  byDigest(digest: string): Recipe | undefined {
    return this.#byDigest.get(digest);
  }
}
