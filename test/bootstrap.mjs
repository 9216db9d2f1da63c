/**
 * Runs every command of the repository: `node test/bootstrap.mjs <command> [arguments]`.
 *
 * Plain JavaScript for any Node from 20 on, because it runs before anything is installed: npm
 * scripts start it with whatever Node the machine has, and it goes on with the pinned one.
 *
 * B1 Nothing outside the clone changes but npm's own cache; who cannot write there has it inside.
 * B2 The exit code is the command's: 0 when all is well, 128 + n when it died of signal n.
 * B3 What is installed equals package-lock.json before any command runs.
 */
import { spawn, spawnSync } from 'node:child_process';
import { accessSync, existsSync, constants as fileModes, readFileSync } from 'node:fs';
import { constants, homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const binFolder = join(root, 'node_modules', '.bin');
const pinnedNode = join(binFolder, 'node');

/** Projects of vitest.config.ts that need no foreign program and take seconds. */
const quickProjects = ['--project', 'unit', '--project', 'tidy'];

/** One program of a command. `name` is what the person sees. */
const format = (write) => ({
  name: 'format',
  argv: ['biome', 'check', ...(write ? ['--write'] : []), '.'],
});
const lint = { name: 'lint', argv: ['oxlint', '--type-aware', '--quiet'] };
/** What the last run found out of files that have not changed since; without it, all are read. */
const typesCache = ['--incremental', '--tsBuildInfoFile', join('.cache', 'types.tsbuildinfo')];
const types = { name: 'types', argv: ['tsc', '-p', 'tsconfig.json', ...typesCache] };
/** The console is a program of its own: it has a page, and no Node. */
const pageTypes = { name: 'types of the console', argv: ['tsc', '-p', 'packages/console'] };
const api = (name, ...args) => ({ name, argv: ['buf', ...args], cwd: 'proto' });
/** What the API is compared with from now on; for a release, and for a deliberate break. */
const releasedApi = api('api released', 'build', '--exclude-source-info', '-o', 'released.binpb');
const vitest = (...args) => ({ name: 'tests', argv: ['vitest', 'run', ...args] });
const program = (path, args) => ({ name: path, argv: ['node', path, ...args] });

/** @typedef {{ name: string, argv: string[], cwd?: string }} Step */

/**
 * Each command as stages: the steps of a stage run side by side, a stage begins when the one
 * before it is well. A command of one step in all is given the terminal as it is.
 * @type {Record<string, (args: string[]) => Step[][]>}
 */
const commands = {
  test: (args) => [[vitest(...args)]],
  check: (args) => {
    const quick = [format(false), lint, types, pageTypes, api('api lint', 'lint')];
    if (args.includes('--no-tests')) return [quick];
    return [quick, [vitest(...quickProjects, '--reporter=dot', ...args)]];
  },
  gen: (args) => [
    [api('api format', 'format', '-w')],
    [api('api lint', 'lint')],
    [api('api code', 'generate')],
    [program('test/type-ids.ts', [])],
    [program('packages/clients/src/main.ts', [])],
    ...(args.includes('--released') ? [[releasedApi]] : []),
  ],
  format: () => [[format(true)], [api('api format', 'format', '-w')]],
  lock: () => [
    [
      {
        name: 'lock',
        argv: ['npm', 'install', '--package-lock-only', '--ignore-scripts', ...npmPlaces()],
      },
    ],
    [program('test/complete-lock.ts', [])],
  ],
  peers: (args) => [[program('test/peers.ts', args)]],
  lab: (args) => [[program('test/lab/main.ts', args)]],
  sim: (args) => [[program('test/sim/main.ts', args)]],
  package: (args) => [[program('packages/debian/src/main.ts', args)]],
  demo: (args) => [[program('packages/demo/src/main.ts', args)]],
  fuzz: (args) => [[program('test/fuzz/main.ts', args)]],
  mutate: (args) => [[program('test/mutate/main.ts', args)]],
  bench: (args) => [[program('test/bench/main.ts', args)]],
};

/**
 * What the commands take that hand no arguments on: anything else is refused. Undefined: they hand
 * these arguments on.
 * @type {Record<string, (args: string[]) => string[] | undefined>}
 */
const flagsOf = {
  check: (args) => (args.includes('--no-tests') ? ['--no-tests'] : undefined),
  gen: () => ['--released'],
  format: () => [],
  lock: () => [],
};

/** What runs now. @type {Set<import('node:child_process').ChildProcess>} */
const children = new Set();

/** Words in npm's output that mean that the registry was not reached. */
const unreachable =
  /ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH/;

/** True when every package of package-lock.json, and our own programs, stand in node_modules. */
function isInstalled() {
  const installedPath = join(root, 'node_modules', '.package-lock.json');
  if (!existsSync(installedPath) || !existsSync(pinnedNode)) return false;
  const wanted = readPackages(join(root, 'package-lock.json'));
  const installed = readPackages(installedPath);
  return Object.entries(wanted).every(([path, entry]) => {
    if (!path.startsWith('node_modules/')) {
      return Object.keys(entry.bin ?? {}).every((name) => existsSync(join(binFolder, name)));
    }
    const there = installed[path];
    // An optional package for another processor is in the lock file and never installed.
    if (there === undefined) return entry.optional === true;
    return there.version === entry.version && there.integrity === entry.integrity;
  });
}

/**
 * @typedef {{ version?: string, integrity?: string, optional?: boolean, bin?: object }} LockEntry
 * @param {string} path
 * @returns {Record<string, LockEntry>}
 */
function readPackages(path) {
  return JSON.parse(readFileSync(path, 'utf8')).packages ?? {};
}

/** True when this user may change what is in the folder. */
function isWritable(folder) {
  try {
    accessSync(folder, fileModes.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Options that keep npm inside the clone, for a user whose home cannot be written or is not. */
function npmPlaces() {
  let cache = process.env['npm_config_cache'];
  try {
    cache ??= join(homedir(), '.npm');
    let nearest = cache;
    while (!existsSync(nearest)) nearest = dirname(nearest);
    if (isWritable(nearest)) return [];
  } catch {
    // The system knows neither HOME nor this user.
  }
  return ['--cache', join(root, '.cache', 'npm'), '--logs-max=0'];
}

/** Brings node_modules to what package-lock.json says (B3). */
function install() {
  if (isInstalled()) return;
  if (!isWritable(root)) {
    stop(
      `What package-lock.json lists is not installed, and you cannot write to ${root}.\n` +
        `Take a clone of your own: git clone ${root} FOLDER, and start the command there.`,
    );
  }
  console.error('Installing what package-lock.json lists (npm ci)…');
  const npm = process.env.npm_execpath;
  const [file, before] = npm === undefined ? ['npm', []] : [process.execPath, [npm]];
  const args = [...before, 'ci', '--prefer-offline', '--ignore-scripts', '--loglevel=error'];
  args.push(...npmPlaces());
  const done = spawnSync(file, args, {
    cwd: root,
    encoding: 'utf8',
    env: childEnvironment(),
    stdio: ['ignore', 'inherit', 'pipe'],
  });
  if (done.status === 0) {
    if (isInstalled()) return;
    stop('npm ci ended well, but node_modules still differs from package-lock.json.');
  }
  process.stderr.write(done.stderr ?? '');
  if (done.error !== undefined) stop(`npm could not be started: ${done.error.message}`);
  if (unreachable.test(done.stderr)) {
    stop(
      'The npm registry cannot be reached, so the dependencies cannot be installed. Check the\n' +
        'network, or point npm at a registry that this machine reaches: npm config set registry URL',
    );
  }
  stop('The dependencies could not be installed; what npm said stands above.');
}

/**
 * The surrounding environment, with the pinned programs found first and what Node has compiled
 * kept for the next process: that halves what it costs to start one of ours.
 */
function childEnvironment() {
  return {
    NODE_COMPILE_CACHE: join(root, '.cache', 'compiled'),
    ...process.env,
    // So that the tests end with us, also when we are killed: see test/run-folder.ts.
    RACKWRIGHT_STARTER: String(process.pid),
    PATH: `${binFolder}${delimiter}${process.env.PATH ?? ''}`,
  };
}

/**
 * Runs one step. `shown` gives it the terminal; otherwise its output is kept for a failure.
 * @param {Step} step
 * @param {boolean} shown
 * @returns {Promise<{ code: number, output: string, seconds: string }>}
 */
function run(step, shown) {
  const start = Date.now();
  const [bin = '', ...args] = step.argv;
  return new Promise((resolve) => {
    const child = spawn(bin === 'npm' ? bin : join(binFolder, bin), args, {
      cwd: join(root, step.cwd ?? '.'),
      env: childEnvironment(),
      stdio: shown ? 'inherit' : ['ignore', 'pipe', 'pipe'],
    });
    children.add(child);
    let output = '';
    const finish = (code) => {
      children.delete(child);
      resolve({ code, output, seconds: ((Date.now() - start) / 1000).toFixed(1) });
    };
    child.stdout?.on('data', (chunk) => (output += chunk));
    child.stderr?.on('data', (chunk) => (output += chunk));
    child.on('error', (error) => {
      output += error.message;
      if (shown) console.error(error.message);
      finish(1);
    });
    child.on('close', (code, signal) =>
      finish(code ?? 128 + constants.signals[signal ?? 'SIGHUP']),
    );
  });
}

/** @param {Step[][]} stages */
async function runAll(stages) {
  if (stages.flat().length === 1) return (await run(stages[0][0], true)).code;
  for (const stage of stages) {
    const last = stage === stages.at(-1) && stage.length === 1 && stages.length > 1;
    const ended = await Promise.all(
      stage.map(async (step) => {
        const shown = last && step.name === 'tests';
        const { code, output, seconds } = await run(step, shown);
        console.error(`${code === 0 ? 'ok    ' : 'FAILED'}  ${step.name}  ${seconds} s`);
        if (code !== 0) console.error(`${output.trimEnd()}\n`);
        return code;
      }),
    );
    const failed = ended.find((code) => code !== 0);
    if (failed !== undefined) return failed;
  }
  return 0;
}

/** @returns {never} */
function stop(message) {
  console.error(message);
  process.exit(1);
}

const [name = '', ...args] = process.argv.slice(2);
const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
if (command === undefined) {
  stop(`There is no command "${name}"; the commands are ${Object.keys(commands).join(', ')}.`);
}
if (Number(process.versions.node.split('.')[0]) < 20) {
  stop(`Node ${process.versions.node} is too old to start with: 20 or newer is needed.`);
}
const flags = flagsOf[name]?.(args);
const unknown = args.find((each) => flags?.includes(each) === false);
if (unknown !== undefined) {
  const takes = flags?.join(', ') || 'no arguments';
  stop(`npm run ${name} does not know "${unknown}": it takes ${takes}.`);
}
install();
// A terminal sends SIGINT to the child as well; others send SIGTERM to us alone. Either way the
// child decides, and we hand on how it ended.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => children.forEach((child) => child.kill('SIGTERM')));
process.exitCode = await runAll(command(args));
