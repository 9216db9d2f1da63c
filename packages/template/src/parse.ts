/** Templates from their text. */
import { readDocument } from './document.ts';
import { type Fields, fieldsOf, type ParseContext, plainText, upTo } from './fields.ts';
import { descriptionCharsMax, templateTimeoutSecondsMax } from './limits.ts';
import { Problems } from './problems.ts';
import { readSteps, timeoutOf } from './steps.ts';
import type { ParsedTemplate, ParseResult } from './types.ts';
import { readVariables } from './variables.ts';

const fieldNames = ['description', 'timeout', 'variables', 'steps', 'handlers'];

/** Everything that the text says; or every problem in it. Throws nothing. */
export function parseTemplate(source: string): ParseResult {
  const problems = new Problems(source);
  const root = readDocument(source, problems);
  const template =
    root === undefined
      ? undefined
      : templateOf({ source, problems }, { node: root, at: 0, path: '' });
  if (template !== undefined && problems.count === 0) return { kind: 'ok', template };
  return { kind: 'bad', problems: problems.list() };
}

function templateOf(reading: ParseContext, root: Parameters<typeof fieldsOf>[1]): ParsedTemplate {
  const fields = fieldsOf(reading, root, fieldNames);
  const { variables, types } = readVariables(reading, fields.get('variables'));
  const around = { variables: types, steps: undefined };
  const timeout = timeoutOf(reading, fields.get('timeout'), around, templateTimeoutSecondsMax);
  if (root.node.kind === 'map' && !fields.has('steps')) {
    reading.problems.add(root.node.at, '', 'has no steps; a template has at least one');
  }
  const steps = readSteps(
    reading,
    { steps: fields.get('steps'), handlers: fields.get('handlers') },
    types,
  );
  return {
    source: reading.source,
    description: descriptionOf(reading, fields),
    timeout,
    variables,
    steps,
  };
}

function descriptionOf(reading: ParseContext, fields: Fields): string {
  const field = fields.get('description');
  return field === undefined ? '' : (plainText(reading, field, upTo(descriptionCharsMax)) ?? '');
}
