/** The control plane as a process of its own, on ports that the system chose. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const main = new URL('../../../controlplane/src/main.ts', import.meta.url).pathname;
const startTimeoutMs = 120_000;

export interface ControlPlaneProcess {
  readonly folder: string;
  /** "127.0.0.1:port" of the operators' port. */
  readonly operators: string;
  readonly tokenFile: string;
  readonly caFile: string;
  /** The public key of erasure certificates. */
  readonly trustFile: string;
  /** SIGTERM, then the end of the process; rejects unless it ended with exit code 0. */
  stop(): Promise<void>;
}

/**
 * Starts it, from its source or from `program`, with an empty data folder. Rejects with what it
 * wrote when it does not get ready. `more` gives what else its configuration has, and may put files
 * into the folder.
 */
export async function startControlPlaneProcess(
  program = main,
  more: (folder: string) => Promise<object> = async () => ({}),
): Promise<ControlPlaneProcess> {
  const folder = await mkdtemp(join(tmpdir(), 'rackwright-process-'));
  const inside = join(folder, 'data');
  const config = join(folder, 'config.yaml');
  const listen = { address: '127.0.0.1', port: 0 };
  const ports = { operators: listen, agents: listen, metrics: listen };
  await writeFile(
    config,
    JSON.stringify({ dataFolder: inside, ...ports, ...(await more(folder)) }),
  );
  const child = spawn(process.execPath, [program, '--config', config], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const port = await readyPort(child);
  const identity = join(inside, 'identity');
  return {
    folder,
    operators: `127.0.0.1:${port}`,
    tokenFile: join(identity, 'admin.token'),
    caFile: join(identity, 'ca.pem'),
    trustFile: join(identity, 'trust.pem'),
    stop: async () => {
      const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      const code = await ended;
      await rm(folder, { recursive: true });
      if (code !== 0) throw new Error(`the control plane ended with exit code ${code}`);
    },
  };
}

/** The port in the log line "ready". */
function readyPort(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    const lines: string[] = [];
    const fail = (why: string) => {
      child.kill('SIGKILL');
      reject(new Error(`the control plane ${why}:\n${lines.join('\n')}`));
    };
    const timer = setTimeout(() => fail('did not get ready'), startTimeoutMs);
    child.once('exit', () => fail('ended'));
    if (child.stderr === null) return fail('has no standard error');
    createInterface(child.stderr).on('line', (line) => {
      lines.push(line);
      const port = readyPortIn(line);
      if (port === undefined) return;
      clearTimeout(timer);
      child.removeAllListeners('exit');
      resolve(port);
    });
  });
}

function readyPortIn(line: string): number | undefined {
  if (!line.startsWith('{')) return undefined;
  const entry: unknown = JSON.parse(line);
  if (typeof entry !== 'object' || entry === null) return undefined;
  const { message, operatorsPort } = entry as { message?: unknown; operatorsPort?: unknown };
  return message === 'ready' && typeof operatorsPort === 'number' ? operatorsPort : undefined;
}
