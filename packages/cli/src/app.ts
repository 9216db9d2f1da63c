/** The command as a whole: its routes, its help, its words for errors. */
import {
  type Application,
  buildApplication,
  buildRouteMap,
  run,
  type StricliProcess,
} from '@stricli/core';
import { otherWords, typedCommand, wordsForArguments, wordsForCommand } from './command-words.ts';
import { auditRoutes } from './commands/access/audit.ts';
import { credentialRoutes } from './commands/access/credential.ts';
import { secretsRoutes } from './commands/access/secrets.ts';
import { tokenRoutes, whoAmI } from './commands/access/token.ts';
import { trustRoutes } from './commands/access/trust.ts';
import { discoveredRoutes } from './commands/discovery/discovered.ts';
import { expectedRoutes } from './commands/discovery/expected.ts';
import { abandonedRoutes } from './commands/erasure/abandoned.ts';
import { erasureRoutes } from './commands/erasure/routes.ts';
import { applyFile } from './commands/file/apply.ts';
import { getFile } from './commands/file/get.ts';
import { fleetRoutes } from './commands/fleet/routes.ts';
import { hostRoutes } from './commands/host/routes.ts';
import { imageRoutes } from './commands/image/routes.ts';
import { poolRoutes } from './commands/pool/routes.ts';
import { rackRoutes } from './commands/rack/routes.ts';
import { templateRoutes } from './commands/template/routes.ts';
import { workflowRoutes } from './commands/workflow/routes.ts';
import { describeFailure, exitCodeOf, exitCodes, exitCodeWords } from './failure.ts';
import { foldHelp } from './output/help.ts';
import type { CliContext, World } from './world.ts';

const routes = buildRouteMap({
  routes: {
    rack: rackRoutes,
    host: hostRoutes,
    credential: credentialRoutes,
    secrets: secretsRoutes,
    fleet: fleetRoutes,
    erasure: erasureRoutes,
    abandoned: abandonedRoutes,
    workflow: workflowRoutes,
    pool: poolRoutes,
    image: imageRoutes,
    discovered: discoveredRoutes,
    expected: expectedRoutes,
    template: templateRoutes,
    audit: auditRoutes,
    token: tokenRoutes,
    whoami: whoAmI,
    trust: trustRoutes,
    apply: applyFile,
    get: getFile,
  },
  docs: {
    brief: 'Bare-metal hosts from racked and cabled to provably wiped',
    fullDescription:
      'Bare-metal hosts from racked and cabled to provably wiped.\n\n' +
      'The control plane is found by --server, --token-file and --ca-file, or by ' +
      'RACKWRIGHT_SERVER, RACKWRIGHT_TOKEN_FILE and RACKWRIGHT_CA_FILE, or by a file with ' +
      'server, tokenFile and caFile (--config, RACKWRIGHT_CONFIG or ' +
      '~/.config/rackwright/config.yaml).\n\n' +
      `Exit codes:\n${exitCodeLines()}`,
  },
});

const settings = {
  name: 'rackwright',
  scanner: { caseStyle: 'allow-kebab-for-camel', allowArgumentEscapeSequence: true },
  documentation: { disableAnsiColor: true, onlyRequiredInUsageLine: true },
  determineExitCode: exitCodeOf,
} as const;

/** With the words for what is wrong with this line. */
function applicationFor(args: readonly string[]): Application<CliContext> {
  const typed = typedCommand(routes, args);
  const text = {
    ...otherWords,
    exceptionWhileRunningCommand: describeFailure,
    exceptionWhileParsingArguments: (error: unknown) => wordsForArguments(typed, error),
    noCommandRegisteredForInput: ({ input }: { readonly input: string }) =>
      wordsForCommand(typed, input),
  };
  return buildApplication<CliContext>(routes, { ...settings, localization: { text } });
}

function exitCodeLines(): string {
  return Object.entries(exitCodeWords)
    .map(([name, words]) => `  ${exitCodes[name as keyof typeof exitCodes]} ${words}`)
    .join('\n');
}

/** Runs one command line; resolves with the exit code. Stricli itself writes only help. */
export async function runCli(args: readonly string[], world: World): Promise<number> {
  const stdout = { write: (text: string) => world.out.write(foldHelp(text)) };
  const stricli: StricliProcess = { stdout, stderr: world.err, env: {} };
  await run(applicationFor(args), args, { process: stricli, world });
  const code = Number(stricli.exitCode ?? exitCodes.done);
  if (code >= 0) return code;
  // Stricli's own codes: -4 and -5 are wrong arguments, the others are errors in here.
  return code === -4 || code === -5 ? exitCodes.usage : exitCodes.internal;
}
