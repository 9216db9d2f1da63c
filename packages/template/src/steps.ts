/** Steps and handlers: their common fields, and their action. */
import { RerunClass } from '@rackwright/messages';
import { type ActionKind, actionNames, actions, besideNames, type ReadAction } from './actions.ts';
import { durationProblem, secondsOf } from './duration.ts';
import { typeOf } from './expression/check.ts';
import { parseExpression } from './expression/parse.ts';
import type { ReferableSteps, Surroundings, UnreferableReason } from './expression/references.ts';
import { typeNames } from './expression/values.ts';
import {
  type Field,
  type Fields,
  fieldsOf,
  interpolated,
  itemsOf,
  type ParseContext,
  parseBoolean,
  parseWholeNumber,
  plainText,
  textScalar,
  upTo,
} from './fields.ts';
import { descriptionCharsMax, retriesMax, stepsMax, stepTimeoutSecondsMax } from './limits.ts';
import { sourceOffset } from './positions.ts';
import { quoted, suggestionText } from './problems.ts';
import type { TextTemplate } from './text.ts';
import type { Action, Condition, ParsedStep } from './types.ts';
import { cyclesOf } from './variables.ts';

/** Fields that every step may have, for each action. */
export const stepFieldsOfAll = [
  'name',
  'description',
  'if',
  'timeout',
  'retries',
  'onFailure',
  'onTimeout',
] as const;

const stepFieldNames: readonly string[] = [...stepFieldsOfAll, ...actionNames, ...besideNames];

/** The words that may be in place of a handler. */
const outcomes = ['fail', 'continue', 'hold'];

const stepName = /^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** A step whose name is known, but nothing else yet. */
interface Outline {
  readonly name: string;
  readonly field: Field;
  readonly fields: Fields;
  readonly handler: boolean;
}

/** All steps, then all handlers. */
export function readSteps(
  reading: ParseContext,
  { steps, handlers }: { steps: Field | undefined; handlers: Field | undefined },
  types: Surroundings['variables'],
): readonly ParsedStep[] {
  const { problems } = reading;
  const lists = [steps, handlers].map((field) => (field ? itemsOf(reading, field) : []));
  const count = lists.flat().length;
  if (count > stepsMax) {
    const message = `has ${count} steps and handlers; at most ${stepsMax} are taken`;
    problems.add(steps?.at ?? 0, 'steps', message);
    return [];
  }
  if (steps?.node.kind === 'list' && lists[0]?.length === 0) {
    problems.add(steps.at, steps.path, 'is empty; a template has at least one step');
  }
  const outlines = lists.flatMap((list, index) =>
    list.map((item) => outline(reading, item, index === 1)),
  );
  refuseTwice(reading, outlines);
  const parsed = outlines.map((each) =>
    stepOf(reading, each, { variables: types, steps: referableSteps(each, outlines) }, outlines),
  );
  refuseCalls(reading, outlines, parsed);
  return parsed.filter((step) => step !== undefined);
}

function outline(reading: ParseContext, field: Field, handler: boolean): Outline {
  const fields = fieldsOf(reading, field, stepFieldNames);
  const { problems } = reading;
  const given = fields.get('name');
  if (given === undefined) {
    if (field.node.kind === 'map') problems.add(field.at, field.path, 'has no name');
    return { name: '', field, fields, handler };
  }
  const wanted = 'must have 1 to 63 characters of a-z, 0-9 and "-", beginning with a letter';
  const name = plainText(reading, given, (text) => {
    if (outcomes.includes(text)) return `${quoted(text)} means what follows a step, so none has it`;
    return stepName.test(text) ? undefined : `${wanted}; ${quoted(text)} has not`;
  });
  return { name: name ?? '', field, fields, handler };
}

function refuseTwice({ problems }: ParseContext, outlines: readonly Outline[]): void {
  const seen = new Map<string, Outline>();
  for (const each of outlines) {
    const first = seen.get(each.name);
    if (each.name === '') continue;
    if (first === undefined) {
      seen.set(each.name, each);
      continue;
    }
    const field = each.fields.get('name') ?? each.field;
    const message = `${first.field.path} is called ${quoted(each.name)} already`;
    problems.add(field.node.at, field.path, message);
  }
}

/** A step sees those before it; a handler sees every step, for it may be called at any time. */
function referableSteps(step: Outline, outlines: readonly Outline[]): ReferableSteps {
  const others = new Map<string, UnreferableReason>();
  const before: string[] = [];
  const position = outlines.indexOf(step);
  for (const [index, { name, handler }] of outlines.entries()) {
    if (name === '' || before.includes(name)) continue;
    if (index === position) others.set(name, 'itself');
    else if (handler) others.set(name, 'handler');
    else if (step.handler || index < position) before.push(name);
    else others.set(name, 'later');
  }
  return { before, others };
}

function stepOf(
  reading: ParseContext,
  { name, field, fields, handler }: Outline,
  around: Surroundings,
  outlines: readonly Outline[],
): ParsedStep | undefined {
  const action = actionOf(reading, field, fields);
  // Only conditions ask how steps ended.
  const fixed: Surroundings = { ...around, steps: undefined };
  const described = fields.get('description');
  if (described !== undefined) plainText(reading, described, upTo(descriptionCharsMax));
  const condition = conditionOf(reading, fields.get('if'), around);
  const timeout = timeoutOf(reading, fields.get('timeout'), fixed, stepTimeoutSecondsMax);
  const retriesField = fields.get('retries');
  const retries =
    retriesField === undefined ? 0 : parseWholeNumber(reading, retriesField, retriesMax);
  const onFailure = followUp(reading, fields.get('onFailure'), outlines);
  const onTimeout = followUp(reading, fields.get('onTimeout'), outlines);
  if (action === undefined) return undefined;
  const kind = actions[action];
  const flags = flagsOf(reading, fields, kind);
  const own = fields.get(action);
  if (own === undefined) return undefined;
  const read: ReadAction | undefined = kind.read({
    reading,
    around: fixed,
    field: own,
    beside: fields,
  });
  if (read === undefined) return undefined;
  if (flags.handOff === true && read.arguments.some((each) => each.name === 'secretEnvironment')) {
    const at = fields.get('handOff') ?? field;
    const message = 'goes with no credential: what is kept for a hand-off may hold no secret';
    reading.problems.add(at.at, at.path, message);
  }
  return {
    name,
    action,
    ...read,
    condition,
    timeout,
    timeoutMs: millisecondsOf(timeout?.constant),
    retries: retries ?? 0,
    onFailure,
    onTimeout,
    handOff: flags.handOff ?? false,
    destructive: flags.destructive ?? read.destructive,
    rerunClass: rerunClassOf(kind, flags.idempotent),
    handler,
    path: field.path,
    at: field.at,
  };
}

/** The one action of a step; a field that belongs to another action is a problem. */
function actionOf(reading: ParseContext, field: Field, fields: Fields): Action | undefined {
  const { problems } = reading;
  const chosen = actionNames.filter((name) => fields.has(name));
  const [action, second] = chosen;
  if (action === undefined) {
    if (field.node.kind !== 'map') return undefined;
    problems.add(field.at, field.path, `does nothing; give it one of ${actionNames.join(', ')}`);
    return undefined;
  }
  if (second !== undefined) {
    const later = fields.get(second);
    const both = chosen.join(' and ');
    const message = `has ${both}; a step does one thing, so make several steps of it`;
    problems.add(later?.at ?? field.at, field.path, message);
    return undefined;
  }
  for (const name of besideNames) {
    const beside = fields.get(name);
    if (beside === undefined || actions[action].beside.includes(name)) continue;
    const owners = actionNames.filter((each) => actions[each].beside.includes(name));
    const message = `${name} goes with ${owners.join(', ')}, not with ${action}`;
    problems.add(beside.at, beside.path, message);
  }
  return action;
}

interface Flags {
  readonly idempotent: boolean | undefined;
  readonly destructive: boolean | undefined;
  readonly handOff: boolean | undefined;
}

function flagsOf(reading: ParseContext, fields: Fields, { beside }: ActionKind): Flags {
  const flag = (name: string) => {
    const field = fields.get(name);
    return field !== undefined && beside.includes(name) ? parseBoolean(reading, field) : undefined;
  };
  return {
    idempotent: flag('idempotent'),
    destructive: flag('destructive'),
    handOff: flag('handOff'),
  };
}

function rerunClassOf({ rerunClass }: ActionKind, idempotent: boolean | undefined): RerunClass {
  if (rerunClass !== undefined) return rerunClass;
  return idempotent === true ? RerunClass.SAFE : RerunClass.NEVER_TWICE;
}

/** A time between 1 s and so many seconds. */
export function timeoutOf(
  reading: ParseContext,
  field: Field | undefined,
  around: Surroundings,
  secondsMax: number,
): TextTemplate | undefined {
  if (field === undefined) return undefined;
  return interpolated(reading, field, around, (text) => durationProblem(text, secondsMax));
}

export function millisecondsOf(text: string | undefined): number | undefined {
  const seconds = text === undefined ? undefined : secondsOf(text);
  return seconds === undefined ? undefined : seconds * 1_000;
}

function conditionOf(
  reading: ParseContext,
  field: Field | undefined,
  around: Surroundings,
): Condition | undefined {
  const scalar = field && textScalar(reading, field, { lenient: true });
  if (field === undefined || scalar === undefined) return undefined;
  const { source, problems } = reading;
  const { path } = field;
  const { text } = scalar;
  const at = (offset: number) => sourceOffset(source, scalar, offset);
  if (text.includes('{{')) {
    problems.add(at(text.indexOf('{{')), path, 'is an expression already; leave out {{ and }}');
    return undefined;
  }
  const parsed = parseExpression(text);
  if (parsed.kind === 'bad') {
    problems.add(at(parsed.at), path, parsed.message);
    return undefined;
  }
  const { expression } = parsed;
  const report = (problem: { at: number; message: string }) =>
    problems.add(at(problem.at), path, problem.message);
  const type = typeOf(expression, around, report);
  if (type !== undefined && type !== 'boolean') {
    report({ at: expression.at, message: `must be true or false, and this is ${typeNames[type]}` });
  }
  return { text: text.trim(), expression, at, path };
}

function followUp(
  reading: ParseContext,
  field: Field | undefined,
  outlines: readonly Outline[],
): string {
  if (field === undefined) return 'fail';
  const handlers = outlines.filter(({ handler }) => handler).map(({ name }) => name);
  const known = [...outcomes, ...handlers.filter((name) => name !== '')];
  const given = plainText(reading, field, (text) => {
    if (known.includes(text)) return undefined;
    if (outlines.some(({ name }) => name === text)) {
      return `${quoted(text)} is a step; what steps call stands under handlers`;
    }
    return `there is no handler ${quoted(text)}${suggestionText(text, known)}`;
  });
  return given ?? 'fail';
}

/** Handlers that call each other would never end. */
function refuseCalls(
  { problems }: ParseContext,
  outlines: readonly Outline[],
  parsed: readonly (ParsedStep | undefined)[],
): void {
  const handlers = parsed
    .filter((step) => step?.handler === true)
    .filter((step) => step !== undefined);
  const calls = new Map(
    handlers.map(({ name, onFailure, onTimeout }) => [name, [onFailure, onTimeout]] as const),
  );
  const reported = new Set<string>();
  for (const cycle of cyclesOf(calls)) {
    const [first, second = first] = cycle;
    const fields = outlines.find(({ name }) => name === first)?.fields;
    const field = ['onFailure', 'onTimeout']
      .map((each) => fields?.get(each))
      .find((each) => each?.node.kind === 'scalar' && each.node.text === second);
    const message = `handlers call each other: ${[...cycle, first].join(' → ')}`;
    if (field === undefined || reported.has(message)) continue;
    reported.add(message);
    problems.add(field.node.at, field.path, message);
  }
}
