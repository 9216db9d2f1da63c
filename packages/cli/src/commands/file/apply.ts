/**
 * rackwright apply: makes the resources equal to those of a file.
 *
 * Must not: print a password, or write anything that was not shown before.
 */

import { buildCommand } from '@stricli/core';
import { briefs } from '../../briefs.ts';
import type { CliContext, CommandIo } from '../../command-io.ts';
import { UsageError } from '../../failure.ts';
import { type FileClients, fileClients } from '../../files/clients.ts';
import {
  carryOut,
  type PlanStep,
  planSteps,
  type RefusedObject,
  validate,
} from '../../files/plan.ts';
import { type FileObject, type PasswordSource, readObjects } from '../../files/read.ts';
import type { YamlProblem } from '../../files/yaml.ts';
import { connectionFlags } from '../../flags.ts';
import { printLines } from '../../output/show.ts';
import { clean } from '../../output/text.ts';
import { type ConnectionFlags, openConnection } from '../../settings.ts';
import { withClient } from '../frame/calls.ts';

interface ApplyFlags extends ConnectionFlags {
  readonly filename: string;
  readonly yes: boolean;
  readonly dryRun: boolean;
  readonly setPasswords: boolean;
}

export const applyFile = buildCommand({
  docs: {
    brief: briefs.apply,
    fullDescription:
      'The file has YAML documents (or JSON), as `rackwright get` prints them: racks, ' +
      'credentials, the fleet, templates, expected hosts, hosts, pools and workflows. What an ' +
      'object in it leaves out is unset; what is not in the file stays as it is. Nothing is ' +
      'written before all of it was checked and you agreed; what fails in the middle goes on ' +
      'when the file is applied again. A workflow that is made starts its first run unless it ' +
      'says disabled.',
  },
  parameters: {
    flags: {
      ...connectionFlags,
      filename: {
        kind: 'parsed',
        parse: String,
        brief: 'The file, or - for standard input',
        placeholder: 'file',
      },
      yes: { kind: 'boolean', default: false, brief: 'Do not ask' },
      dryRun: { kind: 'boolean', default: false, brief: 'Show and check only' },
      setPasswords: {
        kind: 'boolean',
        default: false,
        brief: 'Set the passwords of credentials that exist, too',
      },
    },
    aliases: { f: 'filename' },
  },
  async func(this: CliContext, flags: ApplyFlags) {
    const { io } = this;
    const objects = await readObjectFile(io, flags.filename);
    const passwords = await readPasswords(io, objects);
    await withClient(openConnection(io, flags), fileClients, async (clients) => {
      const steps = await planSteps(clients, objects, passwords, flags.setPasswords);
      printLines(io, steps.flatMap(stepLines));
      refuse(io, flags.filename, await validate(clients, steps));
      const ahead = steps.filter(({ action }) => action !== 'unchanged');
      printLines(io, [summary(steps)]);
      if (flags.dryRun || ahead.length === 0) return;
      if (!flags.yes) await agree(io);
      await carryAllOut(io, clients, ahead);
    });
  },
});

/** The objects of a file. Throws `UsageError` once all that is wrong has been printed. */
export async function readObjectFile(io: CommandIo, path: string): Promise<readonly FileObject[]> {
  const text = path === '-' ? await io.readInput() : await fileText(io, path);
  if (text === undefined) throw new UsageError('--filename is -, and standard input is a terminal');
  const read = readObjects(text);
  if (read.kind === 'bad') {
    const lines = read.problems.map((problem) => problemLine(path, problem));
    io.err.write(`${lines.join('\n')}\n`);
    throw new UsageError(`${path} cannot be applied; nothing was changed`);
  }
  if (read.objects.length === 0) throw new UsageError(`${path} has no object in it`);
  return read.objects;
}

async function fileText(io: CommandIo, path: string): Promise<string> {
  const bytes = await io.readFile(path);
  if (bytes === undefined) throw new UsageError(`--filename names ${path}, which does not exist`);
  return new TextDecoder().decode(bytes);
}

function problemLine(path: string, { line, column, message }: YamlProblem): string {
  return clean(`${path}:${line}:${column}: ${message}`);
}

/** Passwords by the names of their credentials. */
async function readPasswords(
  io: CommandIo,
  objects: readonly FileObject[],
): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for (const { name, password } of objects) {
    if (password === undefined) continue;
    const text = await passwordText(io, password);
    if (text !== undefined) found.set(name, text.replace(/\r?\n$/, ''));
    else {
      const position =
        password.kind === 'file'
          ? `the file ${password.path}, which does not exist`
          : `the variable ${password.variable}, which is not set`;
      throw new UsageError(`the password of ${name} stands in ${position}`);
    }
  }
  return found;
}

async function passwordText(io: CommandIo, source: PasswordSource): Promise<string | undefined> {
  if (source.kind === 'env') return io.environment[source.variable];
  const bytes = await io.readFile(source.path);
  return bytes === undefined ? undefined : new TextDecoder().decode(bytes);
}

function stepLines({ object, action, lines }: PlanStep): string[] {
  const ignored =
    object.ignored.length > 0
      ? [`  (left out, as the control plane makes it: ${object.ignored.join(', ')})`]
      : [];
  return [
    `${object.name}: ${action}`,
    ...(action === 'unchanged' ? [] : [...lines.map((line) => `  ${line}`), ...ignored]),
  ].map(clean);
}

function summary(steps: readonly PlanStep[]): string {
  const count = (action: PlanStep['action']) =>
    steps.filter((step) => step.action === action).length;
  const [made, changed, same] = [count('create'), count('change'), count('unchanged')];
  return `${made} to create, ${changed} to change, ${same} unchanged`;
}

/** Throws `UsageError` once each refusal has been printed. */
function refuse(io: CommandIo, path: string, refusals: readonly RefusedObject[]): void {
  if (refusals.length === 0) return;
  for (const { object, problems } of refusals) {
    for (const problem of problems) {
      const message = `${object.name}: ${problem.message}`;
      const text = problemLine(path, { ...problem, message });
      io.err.write(`${text}\n`);
    }
  }
  throw new UsageError(`${path} cannot be applied; nothing was changed`);
}

async function agree(io: CommandIo): Promise<void> {
  const answer = await io.ask?.('Apply this? [y/N] ');
  if (answer === undefined) {
    throw new UsageError('nobody can be asked here; nothing was changed. Give --yes, or --dry-run');
  }
  if (/^y(es)?$/i.test(answer.trim())) return;
  throw new UsageError('nothing was changed');
}

async function carryAllOut(
  io: CommandIo,
  clients: FileClients,
  steps: readonly PlanStep[],
): Promise<void> {
  const words = { create: 'created', change: 'changed', unchanged: 'unchanged' } as const;
  for (const [at, step] of steps.entries()) {
    try {
      await carryOut(clients, step);
    } catch (error) {
      const left = steps.slice(at + 1).map(({ object }) => object.name);
      const done = at === 0 ? 'nothing' : `${at} of ${steps.length}, as listed`;
      const rest = left.length === 0 ? '' : ` Not tried: ${left.join(', ')}.`;
      io.err.write(
        `${step.object.name} could not be ${words[step.action]}. Done: ${done}.${rest} ` +
          'Applied again, the file goes on here.\n',
      );
      throw error;
    }
    printLines(io, [`${step.object.name} ${words[step.action]}`]);
  }
}
