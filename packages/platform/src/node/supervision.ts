/**
 * The supervisor is systemd: readiness and watchdog by sd_notify(3).
 *
 * W1 Node has no datagram sockets of the local family, so `systemd-notify` speaks for us; the unit
 *    has to accept that (`NotifyAccess=all`).
 * W2 A sign of life needs the event loop, a timer and the program's own answer that it is well. It
 *    says nothing about others: a program that cannot reach its peers is not sick.
 * W3 One question at a time, and an answer that takes too long is none.
 */
import { spawn } from 'node:child_process';
import { errorText } from '../error-text.ts';
import type { Log } from '../log.ts';
import type { Supervision } from '../supervision.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Signs of life in a watchdog's time; two may be lost. */
const signsPerWatchdog = 3;
const sendTimeoutMs = 10_000;

/** The supervision of `environment`. `program` sends the messages to systemd. */
export function nodeSupervision(
  environment: Environment,
  pid: number,
  log: Log,
  program = 'systemd-notify',
): Supervision {
  const socket = environment['NOTIFY_SOCKET'];
  const intervalMs = watchdogIntervalMs(environment, pid);
  const say = (word: string): Promise<void> =>
    socket === undefined
      ? Promise.resolve()
      : send(program, socket, environment['PATH'], word, log);
  return {
    ready: () => say('READY=1'),
    stopping: () => say('STOPPING=1'),
    watch: (problem) => {
      if (socket === undefined || intervalMs === undefined) return () => {};
      return repeat(intervalMs, async () => {
        const text = await within(intervalMs, problem);
        if (text === undefined) await say('WATCHDOG=1');
        else log.error({ problem: text }, 'not well: the watchdog gets no sign of life');
      });
    },
  };
}

/** The interval of signs of life, milliseconds; undefined when nobody waits for one. */
export function watchdogIntervalMs(environment: Environment, pid: number): number | undefined {
  const { WATCHDOG_USEC: microseconds, WATCHDOG_PID: whose } = environment;
  if (microseconds === undefined || (whose !== undefined && Number(whose) !== pid))
    return undefined;
  const intervalMs = Number(microseconds) / 1_000 / signsPerWatchdog;
  return Number.isFinite(intervalMs) && intervalMs >= 1 ? Math.floor(intervalMs) : undefined;
}

/** Calls `act` every `intervalMs`, never twice at once (W3). */
function repeat(intervalMs: number, act: () => Promise<void>): () => void {
  let isBusy = false;
  const timer = setInterval(() => {
    if (isBusy) return;
    isBusy = true;
    void act().finally(() => {
      isBusy = false;
    });
  }, intervalMs);
  timer.unref();
  return () => clearInterval(timer);
}

/** What `ask` finds wrong; a failure or no answer in time is something wrong too. */
async function within(
  limitMs: number,
  ask: () => Promise<string | undefined>,
): Promise<string | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<string>();
  const timer = setTimeout(() => resolve(`no answer within ${limitMs} ms`), limitMs);
  try {
    return await Promise.race([ask(), late]);
  } catch (cause) {
    return errorText(cause);
  } finally {
    clearTimeout(timer);
  }
}

/** Never rejects: the supervisor notices a lost message by itself. */
function send(
  program: string,
  socket: string,
  path: string | undefined,
  word: string,
  log: Log,
): Promise<void> {
  return new Promise((resolve) => {
    const child = spawn(program, [word], {
      env: { NOTIFY_SOCKET: socket, ...(path === undefined ? {} : { PATH: path }) },
      stdio: 'ignore',
      timeout: sendTimeoutMs,
      killSignal: 'SIGKILL',
    });
    child.once('error', (cause) => {
      log.error({}, `${program} cannot be started`, cause);
      resolve();
    });
    child.once('close', (code) => {
      if (code !== 0) log.error({ code: code ?? -1 }, `${program} ${word} failed`);
      resolve();
    });
  });
}
