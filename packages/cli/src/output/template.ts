/** Templates as people read them. */
import { durationMs } from '@bufbuild/protobuf/wkt';
import {
  ArgumentType,
  type Template,
  TemplateSchema,
  type TemplateStep,
  type TemplateVariable,
} from '@rackwright/messages';
import type { CommandIo } from '../command-io.ts';
import { enumName } from './enum-name.ts';
import type { OutputKind } from './kinds.ts';
import { isForPrograms, printAs, printFields, printLines, printTable } from './show.ts';
import type { TextColumn } from './table.ts';
import { labelText } from './text.ts';
import { instant } from './time.ts';

/** A summary of a valid template. */
export function summary(template: Template | undefined): string {
  if (template === undefined) return 'no problem';
  const { steps, variables } = template;
  return `no problem; steps: ${steps.length}, variables: ${variables.length}`;
}

/** A template with its variables and steps. */
export function showTemplate(io: CommandIo, output: OutputKind, template: Template): void {
  if (isForPrograms(output)) {
    printAs(io, output, TemplateSchema, template);
    return;
  }
  const { name, description, digest, labels, builtIn, updateTime, variables, steps } = template;
  printFields(io, [
    ['name', name],
    ['description', description],
    ['digest', digest],
    ['labels', labelText(labels)],
    ['changed', builtIn ? 'built in' : instant(updateTime)],
  ]);
  if (variables.length > 0) {
    printLines(io, ['']);
    printTable(io, output, variableColumns, variables);
  }
  printLines(io, ['']);
  printTable(io, output, stepColumns, steps);
}

const variableColumns: readonly TextColumn<TemplateVariable>[] = [
  { title: 'VARIABLE', value: ({ name }) => name },
  {
    title: 'TYPE',
    value: ({ type, values }) =>
      type === ArgumentType.CHOICE ? values.join('|') : enumName('ArgumentType', type),
    widthMin: 8,
  },
  {
    title: 'DEFAULT',
    value: (each) => (each.required ? '(required)' : each.defaultValue),
    widthMin: 10,
  },
  { title: 'DESCRIPTION', value: ({ description }) => description, widthMin: 15, dropOrder: 1 },
];

const stepColumns: readonly TextColumn<TemplateStep>[] = [
  { title: 'STEP', value: ({ name }) => name },
  { title: 'ACTION', value: ({ action, handOff }) => (handOff ? `${action}, hands off` : action) },
  { title: 'DESTROYS', value: ({ destructive }) => (destructive ? 'yes' : 'no'), dropOrder: 2 },
  {
    title: 'TIMEOUT',
    value: ({ timeout }) => (timeout === undefined ? '' : `${durationMs(timeout) / 1_000}s`),
    dropOrder: 3,
  },
  { title: 'RETRIES', value: ({ retries }) => String(retries), dropOrder: 4 },
  { title: 'ON FAILURE', value: ({ onFailure }) => onFailure, dropOrder: 5 },
  { title: 'IF', value: ({ condition }) => condition, widthMin: 12, dropOrder: 1 },
];
