/**
 * Templates with a host, values and a run filled in.
 *
 * Invariants:
 * 1. The same template and scope render the same.
 * 2. A rendered template asks about steps only, in conditions; arguments are fixed.
 * 3. All arguments and conditions together have at most `renderedBytesMax`.
 */

import { SkipCause } from '@rackwright/messages';
import { secondsOf } from './duration.ts';
import { type EvaluatedExpression, evaluate, type Lookup } from './expression/evaluate.ts';
import { printed } from './expression/print.ts';
import type { Value } from './expression/values.ts';
import { renderedBytesMax } from './limits.ts';
import { Problems } from './problems.ts';
import { millisecondsOf } from './steps.ts';
import { type RenderingParameters, renderText, roomForAll, tooMuch } from './text.ts';
import type {
  ParsedArgument,
  ParsedStep,
  ParsedTemplate,
  RenderedStep,
  RenderResult,
  RenderScope,
} from './types.ts';
import { variableValues } from './variables.ts';

/** The steps that a run pins; or every problem. Throws nothing. */
export function renderTemplate(template: ParsedTemplate, scope: RenderScope): RenderResult {
  const problems = new Problems(template.source);
  const surroundings = lookupOf(scope);
  const variable = variableValues(template.variables, scope.variables, surroundings, problems);
  if (problems.count > 0) return { kind: 'bad', problems: problems.list() };
  const lookup: Lookup = (path) =>
    path[0] === 'vars' ? variable(String(path[1])) : surroundings(path);
  const rendering = { lookup, problems, room: roomForAll() };
  const timeout = template.timeout && renderText(template.timeout, rendering);
  const steps = template.steps.map((step) => renderStep(step, rendering));
  const bytes = steps.reduce((sum, step) => sum + sizeOf(step), 0);
  if (bytes > renderedBytesMax) {
    problems.add(0, 'steps', `the steps come to ${bytes} bytes: ${tooMuch}`);
  }
  if (problems.count > 0) return { kind: 'bad', problems: problems.list() };
  return { kind: 'ok', rendered: { steps, timeoutMs: millisecondsOf(timeout) } };
}

/** Fields of the scope; how steps end is not known yet. */
function lookupOf({ host, run }: RenderScope): Lookup {
  const roots: Readonly<Record<string, Value>> = {
    host: {
      ...host,
      bmc: { ...host.bmc },
      disks: host.disks.map((disk) => ({ ...disk })),
      interfaces: host.interfaces.map((each) => ({ ...each })),
    },
    run: { number: run.number },
  };
  return (path) => {
    const [root, ...rest] = path;
    if (root === 'steps') return 'open';
    let value: Value = typeof root === 'string' ? roots[root] : undefined;
    for (const part of rest) value = fieldOf(value, part);
    return { value };
  };
}

function fieldOf(value: Value, part: string | number): Value {
  if (typeof value !== 'object' || !Object.hasOwn(value, part)) return undefined;
  return (value as Readonly<Record<string | number, Value>>)[part];
}

function renderStep(step: ParsedStep, rendering: RenderingParameters): RenderedStep {
  const { name: title, action, condition, retries, onFailure, onTimeout } = step;
  const { handOff, destructive, rerunClass, handler } = step;
  const evaluated = condition && evaluate(condition.expression, rendering.lookup);
  const isNever = evaluated !== undefined && 'value' in evaluated && evaluated.value !== true;
  const timeout = step.timeout && !isNever ? renderText(step.timeout, rendering) : undefined;
  const fixed = { title, action, step: step.step, retries, onFailure, onTimeout };
  const flags = { handOff, destructive, rerunClass, handler };
  return {
    ...fixed,
    ...flags,
    // A step that is never taken need not fit the host.
    arguments: isNever ? {} : argumentsOf(step, rendering),
    timeoutMs: millisecondsOf(timeout),
    condition: residual(evaluated),
    skipCause: isNever ? SkipCause.NEVER : SkipCause.UNSPECIFIED,
    skippedBecause: isNever ? `its condition does not hold for this host: ${condition?.text}` : '',
  };
}

/** The rest of a condition. */
function residual(evaluated: EvaluatedExpression | undefined): string {
  if (evaluated === undefined) return '';
  if ('open' in evaluated) return printed(evaluated.open);
  return evaluated.value === true ? '' : 'false';
}

function argumentsOf(
  step: ParsedStep,
  rendering: RenderingParameters,
): Readonly<Record<string, string>> {
  const rendered = step.arguments.map((argument) => {
    const text = argumentText(argument, rendering);
    const seconds = step.action === 'wait' ? String(secondsOf(text) ?? 0) : text;
    return [argument.name, seconds] as const;
  });
  return Object.fromEntries(rendered);
}

function argumentText(argument: ParsedArgument, rendering: RenderingParameters): string {
  switch (argument.kind) {
    case 'text':
      return renderText(argument.text, rendering) ?? '';
    case 'list':
      return JSON.stringify(argument.items.map((item) => renderText(item, rendering) ?? ''));
    case 'map':
      return JSON.stringify(
        Object.fromEntries(
          argument.entries.map(([name, text]) => [name, renderText(text, rendering) ?? '']),
        ),
      );
  }
}

function sizeOf({ title, arguments: given, condition, skippedBecause }: RenderedStep): number {
  const texts = [title, condition, skippedBecause, ...Object.entries(given).flat()];
  return texts.reduce((sum, text) => sum + new TextEncoder().encode(text).byteLength, 0);
}
