/**
 * The targets of references in expressions: the fields of a host, variables, the run and its steps.
 */
import { quoted, suggestionText } from '../problems.ts';
import { pathText } from './syntax.ts';
import type { ValueType } from './values.ts';

type Shape =
  | ValueType
  | { readonly kind: 'record'; readonly fields: Readonly<Record<string, Shape>> }
  | { readonly kind: 'records'; readonly fields: Readonly<Record<string, Shape>> }
  /** Texts by names that are not known beforehand. */
  | { readonly kind: 'texts by name' };

/** Every field of a host, as REFERENCE.md lists them. */
export const hostFields: Readonly<Record<string, Shape>> = {
  name: 'text',
  id: 'text',
  uid: 'text',
  rack: 'text',
  labels: { kind: 'texts by name' },
  bmc: { kind: 'record', fields: { address: 'text' } },
  bootMacs: 'texts',
  serial: 'text',
  manufacturer: 'text',
  product: 'text',
  memoryBytes: 'integer',
  disks: {
    kind: 'records',
    fields: {
      serial: 'text',
      wwn: 'text',
      model: 'text',
      sizeBytes: 'integer',
      kernelName: 'text',
    },
  },
  interfaces: {
    kind: 'records',
    fields: { name: 'text', mac: 'text', speedMbps: 'integer', linkUp: 'boolean' },
  },
};

export const stepFields = { state: 'text', exitCode: 'integer', output: 'text' } as const;

/** What `steps.NAME.state` can be. */
export const stepStates = ['pending', 'running', 'succeeded', 'failed', 'skipped'] as const;

/** The possible targets at a place in a template. */
export interface Surroundings {
  readonly variables: ReadonlyMap<string, ValueType>;
  /** Steps that may be referred to; undefined where none may. */
  readonly steps: ReferableSteps | undefined;
}

export interface ReferableSteps {
  readonly before: readonly string[];
  /** Other steps of the template, and why they cannot be referred to. */
  readonly others: ReadonlyMap<string, UnreferableReason>;
}

export type UnreferableReason = 'itself' | 'later' | 'handler';

const unreferableTexts: Readonly<Record<UnreferableReason, (step: string) => string>> = {
  itself: (step) => `${step} is this step; it has not ended yet`,
  later: (step) => `the step ${step} comes later; only steps before this one have ended`,
  handler: (step) => `${step} is a handler; only steps can be asked about`,
};

/** The type of a reference, or its problem. */
export type ResolvedType = { readonly type: ValueType } | { readonly message: string };

export function resolve(path: readonly (string | number)[], around: Surroundings): ResolvedType {
  const [root, ...rest] = path;
  switch (root) {
    case 'host':
      return within({ kind: 'record', fields: hostFields }, path, 1);
    case 'run':
      return within({ kind: 'record', fields: { number: 'integer' } }, path, 1);
    case 'vars':
      return variable(rest, path, around);
    case 'steps':
      return step(rest, path, around);
    default: {
      const name = String(root);
      const hint = around.variables.has(name)
        ? `; write vars.${name}`
        : suggestionText(name, ['host', 'vars', 'run', 'steps']);
      return { message: `there is no ${quoted(name)}${hint}` };
    }
  }
}

function within(shape: Shape, path: readonly (string | number)[], from: number): ResolvedType {
  const name = path[from];
  if (name === undefined) return endOf(shape, path);
  const so = pathText(path.slice(0, from));
  if (typeof shape === 'string') {
    if (shape === 'texts' && typeof name === 'number') return within('text', path, from + 1);
    return { message: `${so} is ${shape === 'texts' ? 'a list' : 'one value'}; it has no fields` };
  }
  switch (shape.kind) {
    case 'texts by name':
      return typeof name === 'string'
        ? within('text', path, from + 1)
        : { message: `${so} has names, not places` };
    case 'records':
      return typeof name === 'number'
        ? within({ kind: 'record', fields: shape.fields }, path, from + 1)
        : { message: `${so} is a list; write ${so}[0].${name}` };
    case 'record': {
      if (typeof name === 'number') return { message: `${so} is no list` };
      const field = Object.hasOwn(shape.fields, name) ? shape.fields[name] : undefined;
      if (field !== undefined) return within(field, path, from + 1);
      return {
        message: `${so} has no ${quoted(name)}${suggestionText(name, Object.keys(shape.fields))}`,
      };
    }
  }
}

function endOf(shape: Shape, path: readonly (string | number)[]): ResolvedType {
  if (typeof shape === 'string') return { type: shape };
  const so = pathText(path);
  switch (shape.kind) {
    case 'records':
      return { type: 'records' };
    case 'record':
      // One of a list is a value of its own, the roots are not.
      if (typeof path.at(-1) === 'number') return { type: 'record' };
      return {
        message: `${so} is no value; name a field${suggestionText('', Object.keys(shape.fields))}`,
      };
    case 'texts by name':
      return { message: `${so} is no value; name one, as ${so}.role` };
  }
}

function variable(
  rest: readonly (string | number)[],
  path: readonly (string | number)[],
  { variables }: Surroundings,
): ResolvedType {
  const [name, ...more] = rest;
  const names = [...variables.keys()];
  if (name === undefined)
    return { message: `vars is no value; name a variable${suggestionText('', names)}` };
  const type = typeof name === 'string' ? variables.get(name) : undefined;
  if (type === undefined) {
    const known = names.length === 0 ? '; the template declares no variables' : '';
    const text = String(name);
    return {
      message: `there is no variable ${quoted(text)}${known}${suggestionText(text, names)}`,
    };
  }
  if (more.length === 0) return { type };
  return { message: `${pathText(path.slice(0, 2))} is one value; it has no fields` };
}

function step(
  rest: readonly (string | number)[],
  path: readonly (string | number)[],
  { steps }: Surroundings,
): ResolvedType {
  if (steps === undefined) {
    return { message: 'how steps end is known only in the "if" of later steps' };
  }
  const [name, field, ...more] = rest;
  if (typeof name !== 'string') {
    return { message: 'steps is no value; write steps.NAME.state, .exitCode or .output' };
  }
  const other = steps.others.get(name);
  if (other !== undefined) return { message: unreferableTexts[other](quoted(name)) };
  if (!steps.before.includes(name)) {
    const suggestion = suggestionText(name, steps.before);
    return { message: `there is no step ${quoted(name)} before this one${suggestion}` };
  }
  const fields = Object.keys(stepFields);
  if (typeof field === 'string' && Object.hasOwn(stepFields, field) && more.length === 0) {
    return { type: stepFields[field as keyof typeof stepFields] };
  }
  const so = pathText(path.slice(0, 2));
  if (field === undefined)
    return { message: `${so} is no value; name a field${suggestionText('', fields)}` };
  if (more.length > 0) return { message: `${pathText(path.slice(0, 3))} has no fields` };
  return {
    message: `${so} has no ${quoted(String(field))}${suggestionText(String(field), fields)}`,
  };
}
