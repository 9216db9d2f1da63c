/**
 * The step `run.script`: a script in the ramdisk.
 *
 * 1. Nothing runs before guard 0 has passed, unless the order says that the step destroys nothing:
 *    a template may say so of its step, and the control plane puts it into the order.
 * 2. The script is a private file while it runs, and gone afterwards.
 * 3. An interrupted script is not resumed; its running processes have been ended before the next
 *    step begins.
 */
import { ArgumentType, RerunClass, scriptStep } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import { type Disk, invalid, type Read, valid } from '@rackwright/platform';
import type { FailedAttempt } from '@rackwright/results';
import type { Programs } from '../program/program.ts';
import { runProgram } from '../program/run-program.ts';
import { withoutSecrets } from '../program/without-secrets.ts';
import { readEnvironment, readSecretEnvironment, unknownArguments } from './arguments.ts';
import { guardIdentity } from './guard.ts';
import type { Step, StepContext, StepResult } from './step.ts';

/** What a program of a step needs of this machine. */
export interface ScriptParts {
  readonly programs: Programs;
  readonly disk: Disk;
  /** A private folder for files that a step needs while it runs; exists. */
  readonly privateFolder: string;
  /** The folder in which programs start. */
  readonly workingFolder: string;
  /** PATH of programs. */
  readonly path: string;
  /** By the interpreter that a script names: the program that runs on this machine. */
  readonly interpreters: ReadonlyMap<string, string>;
}

/** The interpreters that a script may name; the first one is taken when it names none. */
export const interpreters = ['/bin/sh', '/usr/bin/node'] as const;
/** UTF-8 bytes. */
export const scriptBytesMax = 64 * 1024;
const scriptMode = 0o700;
/** The argument's own description. */
export const secretEnvironmentText =
  'variables that are secrets, as a JSON object of credentials; their values come apart';
const knownArguments = ['script', 'interpreter', 'environment', 'secretEnvironment'];

interface Script {
  readonly text: string;
  readonly interpreter: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly secrets: Readonly<Record<string, string>>;
}

export function runScript(parts: ScriptParts): Step {
  return {
    description: {
      name: scriptStep,
      priority: 0,
      rerunClass: RerunClass.NEVER_TWICE,
      destructive: true,
      abortable: true,
      description: 'Runs a script in the ramdisk; it succeeds when the script ends with 0.',
      typedArguments: [
        { name: 'script', required: true, description: 'its text' },
        {
          name: 'interpreter',
          type: ArgumentType.CHOICE,
          values: [...interpreters],
          defaultValue: interpreters[0],
          description: 'the program that runs it',
        },
        { name: 'environment', description: 'variables, as a JSON object of texts' },
        { name: 'secretEnvironment', description: secretEnvironmentText },
      ],
    },
    check: (context) => check(context),
    run: (context) => run(context, parts),
  };
}

/** Why the script cannot run at all; nothing has been done then. */
async function check(context: StepContext): Promise<StepResult | undefined> {
  const script = readScript(context);
  if (script.kind === 'bad') return failed('invalidArgument', script.problem);
  if (context.order.destructive === false) return undefined;
  const guard = await guardIdentity(context);
  return guard.kind === 'failed' ? guard.end : undefined;
}

async function run(context: StepContext, parts: ScriptParts): Promise<StepResult> {
  const refused = await check(context);
  if (refused !== undefined) return refused;
  const script = readScript(context);
  if (script.kind === 'bad') return failed('invalidArgument', script.problem);
  const { text, interpreter, environment, secrets } = script.value;
  const path = `${parts.privateFolder}/script`;
  await parts.disk.writeAtomic(path, new TextEncoder().encode(text), scriptMode);
  try {
    return await runProgram(context, withoutSecrets(parts.programs, secrets), {
      operationId: context.operationId,
      file: parts.interpreters.get(interpreter) ?? interpreter,
      args: [path],
      environment: { ...environmentOf(context, parts.path), ...environment, ...secrets },
      folder: parts.workingFolder,
    });
  } finally {
    await parts.disk.remove(path);
  }
}

/** The variables in the environment of every program of a step. */
export function environmentOf(
  {
    operationId,
    hostName,
    traceParent,
  }: Pick<StepContext, 'operationId' | 'hostName' | 'traceParent'>,
  path: string,
): Record<string, string> {
  const [hostUid = '', run = ''] = operationId.split('/');
  return {
    PATH: path,
    LC_ALL: 'C',
    RACKWRIGHT_HOST: hostName,
    RACKWRIGHT_RUN: `${hostUid}/${run}`,
    // The variable that OpenTelemetry uses for programs.
    ...(traceParent === undefined ? {} : { TRACEPARENT: traceParent }),
  };
}

function readScript({ order, secretEnvironment }: StepContext): Read<Script> {
  const { mode, arguments: given } = order;
  if (mode !== agent.StepMode.RUN) return invalid('mode: a script can only be run, not checked');
  const unknown = unknownArguments(given, knownArguments);
  if (unknown !== undefined) return invalid(unknown);
  const text = given['script'] ?? '';
  if (text === '') return invalid('script: is missing');
  const bytes = Buffer.byteLength(text);
  if (bytes > scriptBytesMax) {
    return invalid(`script: has ${bytes} bytes; at most ${scriptBytesMax} are taken`);
  }
  const interpreter = given['interpreter'] || interpreters[0];
  if (!(interpreters as readonly string[]).includes(interpreter)) {
    return invalid(`interpreter: "${interpreter}" is not one of ${interpreters.join(', ')}`);
  }
  const environment = readEnvironment(given['environment']);
  if (environment.kind === 'bad') return environment;
  const secrets = readSecretEnvironment(given['secretEnvironment'], secretEnvironment);
  if (secrets.kind === 'bad') return secrets;
  return valid({ text, interpreter, environment: environment.value, secrets: secrets.value });
}

function failed(type: FailedAttempt['type'], message: string): StepResult {
  return { result: { kind: 'failed', type, message } };
}
