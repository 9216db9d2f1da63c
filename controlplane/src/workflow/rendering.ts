/** A workflow's template, rendered for one run of it on one host. Pure. */
import {
  type Host,
  NotRunnableKind,
  sourceProblemText,
  type TemplateId,
  type WorkflowRun,
  type store as wire,
} from '@rackwright/messages';
import {
  type Problem,
  parseTemplate,
  type RenderedTemplate,
  renderTemplate,
} from '@rackwright/template';
import type { HostRequest } from '../host/index.ts';
import { templateHostOf } from './templates/index.ts';

/** A template in stored form. */
export interface TemplateText {
  readonly source: string;
  /** SHA-256 of the source, lower-case hex. */
  readonly digest: string;
}

/** The order to the host. */
export type StartOrder = Extract<HostRequest, { kind: 'workflow' }>;

export type Rendering =
  | { readonly kind: 'ok'; readonly order: StartOrder }
  /** Why nothing can be run, with line and column where known. */
  | { readonly kind: 'bad'; readonly text: string };

/** The rendering of a template for a host. */
type TemplateRendering =
  | Exclude<Rendering, { kind: 'bad' }>
  | (NotRunnable & { readonly kind: 'bad' });

/** Why a workflow cannot be run. */
export interface NotRunnable {
  readonly why: NotRunnableKind;
  readonly text: string;
}

/** The most problems in a text; the rest are counted. */
const problemsShownMax = 5;

/** The order for the host, or why the template cannot run. */
export function renderRun(
  templateId: TemplateId,
  template: TemplateText | undefined,
  host: Host,
  facts: wire.HostFacts | undefined,
  run: Pick<WorkflowRun, 'name' | 'number' | 'variables' | 'workflowUid'>,
): TemplateRendering {
  const name = `templates/${templateId}`;
  if (template === undefined) {
    return { kind: 'bad', why: NotRunnableKind.NO_TEMPLATE, text: `${name} does not exist` };
  }
  const parsed = parseTemplate(template.source);
  if (parsed.kind === 'bad') return doesNotFit(name, parsed.problems);
  const made = renderTemplate(parsed.template, {
    host: templateHostOf(host, facts?.hostUid === host.uid ? facts.inventory : undefined),
    variables: run.variables,
    run: { number: run.number },
  });
  if (made.kind === 'bad') return doesNotFit(name, made.problems);
  return { kind: 'ok', order: orderOf(run, template, made.rendered) };
}

function doesNotFit(name: string, problems: readonly Problem[]) {
  const text = problemText(name, problems);
  return { kind: 'bad', why: NotRunnableKind.DOES_NOT_FIT, text } as const;
}

function orderOf(
  { name, workflowUid }: Pick<WorkflowRun, 'name' | 'workflowUid'>,
  { digest }: TemplateText,
  { steps, timeoutMs }: RenderedTemplate,
): StartOrder {
  const templateDigest = digest;
  return { kind: 'workflow', workflowRun: name, workflowUid, templateDigest, steps, timeoutMs };
}

/** "templates/clock: line 3, column 5: …" */
function problemText(name: string, problems: readonly Problem[]): string {
  const lines = problems.slice(0, problemsShownMax).map(sourceProblemText);
  const more = problems.length - lines.length;
  return `${name}: ${lines.join('; ')}${more > 0 ? `; and ${more} more` : ''}`;
}
