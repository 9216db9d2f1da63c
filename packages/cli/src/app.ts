/** The command as a whole: its routes, its help, its words for errors. */
import { errorText } from '@rackwright/platform';
import {
  type Application,
  buildApplication,
  proposeCompletions,
  type RouteMap,
  run,
  type StricliProcess,
} from '@stricli/core';
import type { CliContext, CommandIo } from './command-io.ts';
import { otherTexts, textForArguments, textForCommand, typedCommand } from './command-text.ts';
import { exitCodes, exitCodeTexts } from './failure.ts';
import { foldHelp } from './output/help.ts';
import { routeOf, routesFor } from './routes.ts';

const description =
  'Bare-metal hosts from racked and cabled to provably wiped\n\n' +
  'The control plane is found by --server, --token-file and --ca-file, or by ' +
  'RACKWRIGHT_SERVER, RACKWRIGHT_TOKEN_FILE and RACKWRIGHT_CA_FILE, or by a context ' +
  '(--context, RACKWRIGHT_CONTEXT, `rackwright context`) of the file --config, ' +
  'RACKWRIGHT_CONFIG or ~/.config/rackwright/config.yaml.\n\n' +
  `Exit codes:\n${exitCodeLines()}`;

const settings = {
  name: 'rackwright',
  scanner: { caseStyle: 'allow-kebab-for-camel', allowArgumentEscapeSequence: true },
  documentation: { disableAnsiColor: true, onlyRequiredInUsageLine: true },
} as const;

/** With the texts for a wrong command line; those for failed calls come with commands. */
async function applicationFor(
  root: RouteMap<CliContext>,
  args: readonly string[],
): Promise<Application<CliContext>> {
  const typed = typedCommand(root, args);
  const failures = routeOf(args) === undefined ? undefined : await import('./failure-text.ts');
  const text = {
    ...otherTexts,
    exceptionWhileRunningCommand: (error: unknown) =>
      failures?.describeFailure(error) ?? errorText(error),
    exceptionWhileParsingArguments: (error: unknown) => textForArguments(typed, error),
    noCommandRegisteredForInput: ({ input }: { readonly input: string }) =>
      textForCommand(typed, input),
  };
  return buildApplication<CliContext>(root, {
    ...settings,
    determineExitCode: (error) => failures?.exitCodeOf(error) ?? exitCodes.internal,
    localization: { text },
  });
}

function exitCodeLines(): string {
  return Object.entries(exitCodeTexts)
    .map(([name, text]) => `  ${exitCodes[name as keyof typeof exitCodes]} ${text}`)
    .join('\n');
}

/** Runs one command line; resolves with the exit code. Stricli itself writes only help. */
export async function runCli(given: readonly string[], io: CommandIo): Promise<number> {
  const [first, ...rest] = given;
  if (first === '__complete') return complete(rest, io);
  const args = first === '--version' ? ['version', ...rest] : given;
  const stdout = { write: (text: string) => io.out.write(foldHelp(text)) };
  const stricli: StricliProcess = { stdout, stderr: io.err, env: {} };
  const app = await applicationFor(await routesFor(args, description), args);
  await run(app, args, { process: stricli, io });
  const code = Number(stricli.exitCode ?? exitCodes.done);
  if (code >= 0) return code;
  // Stricli's own codes: -4 and -5 are wrong arguments, the others are errors in here.
  return code === -4 || code === -5 ? exitCodes.usage : exitCodes.internal;
}

/**
 * Prints what the last word of a line may become: "proposal<TAB>what it is". Never fails, and
 * prints nothing when something is wrong: a shell shows all output to the user.
 */
async function complete(args: readonly string[], io: CommandIo): Promise<number> {
  const silent = { write: () => undefined };
  try {
    const app = await applicationFor(await routesFor(args, description), args);
    const stricli: StricliProcess = { stdout: silent, stderr: silent, env: {} };
    const quiet: CommandIo = { ...io, err: { ...silent, columns: undefined } };
    const proposals = await proposeCompletions(app, args, { process: stricli, io: quiet });
    for (const { completion, brief } of proposals) {
      io.out.write(`${completion}\t${brief.replaceAll(/\s+/g, ' ')}\n`);
    }
  } catch {
    // Nothing is proposed.
  }
  return exitCodes.done;
}
