/** The code of each word after `rackwright`, loaded when it is typed: start-up time counts. */
import { buildCommand, buildRouteMap, type Command, type RouteMap } from '@stricli/core';
import { briefs, type RouteName } from './briefs.ts';
import type { CliContext } from './command-io.ts';

type Target = Command<CliContext> | RouteMap<CliContext>;

const loaders: Readonly<Record<RouteName, () => Promise<Target>>> = {
  rack: async () => (await import('./commands/rack/routes.ts')).rackRoutes,
  host: async () => (await import('./commands/host/routes.ts')).hostRoutes,
  credential: async () => (await import('./commands/access/credential.ts')).credentialRoutes,
  secrets: async () => (await import('./commands/access/secrets.ts')).secretsRoutes,
  fleet: async () => (await import('./commands/fleet/routes.ts')).fleetRoutes,
  erasure: async () => (await import('./commands/erasure/routes.ts')).erasureRoutes,
  abandoned: async () => (await import('./commands/erasure/abandoned.ts')).abandonedRoutes,
  workflow: async () => (await import('./commands/workflow/routes.ts')).workflowRoutes,
  pool: async () => (await import('./commands/pool/routes.ts')).poolRoutes,
  image: async () => (await import('./commands/image/routes.ts')).imageRoutes,
  discovered: async () => (await import('./commands/discovery/discovered.ts')).discoveredRoutes,
  expected: async () => (await import('./commands/discovery/expected.ts')).expectedRoutes,
  template: async () => (await import('./commands/template/routes.ts')).templateRoutes,
  events: async () => (await import('./commands/events/follow.ts')).followEvents,
  sink: async () => (await import('./commands/events/sink.ts')).sinkRoutes,
  audit: async () => (await import('./commands/access/audit.ts')).auditRoutes,
  token: async () => (await import('./commands/access/token.ts')).tokenRoutes,
  whoami: async () => (await import('./commands/access/token.ts')).whoAmI,
  trust: async () => (await import('./commands/access/trust.ts')).trustRoutes,
  apply: async () => (await import('./commands/file/apply.ts')).applyFile,
  get: async () => (await import('./commands/file/get.ts')).getFile,
  top: async () => (await import('./commands/self/top.ts')).showTop,
  context: async () => (await import('./commands/self/context.ts')).contextRoutes,
  login: async () => (await import('./commands/self/login.ts')).login,
  logout: async () => (await import('./commands/self/login.ts')).logout,
  completion: async () => (await import('./commands/self/completion.ts')).completionRoutes,
  version: async () => (await import('./commands/self/show-version.ts')).showVersion,
  'support-bundle': async () => (await import('./commands/self/support-bundle.ts')).supportBundle,
};

/** The first words of all commands. */
export const routeNames = Object.keys(loaders) as readonly RouteName[];

/** Loads the code of one of them. */
export function loadRoute(name: RouteName): Promise<Target> {
  return loaders[name]();
}

/** Which of them a line begins with; undefined: it asks for help, or names none. */
export function routeOf(args: readonly string[]): RouteName | undefined {
  const [first] = args;
  return routeNames.find((name) => name === first);
}

/** All routes. Only the code that the line needs is loaded; help needs no more of the others. */
export async function routesFor(
  args: readonly string[],
  fullDescription: string,
): Promise<RouteMap<CliContext>> {
  const typed = routeOf(args);
  const loaded = typed === undefined ? undefined : await loadRoute(typed);
  const routes = routeNames.map((name) => [
    name,
    loaded !== undefined && name === typed ? loaded : groupFor(briefs[name]),
  ]);
  const [brief = ''] = fullDescription.split('\n', 1);
  return buildRouteMap({
    routes: Object.fromEntries(routes) as Record<string, Target>,
    docs: { brief, fullDescription },
  });
}

function groupFor(brief: string): Command<CliContext> {
  return buildCommand<object, [], CliContext>({
    docs: { brief },
    parameters: {},
    func: () => new Error('this command is not loaded'),
  });
}
