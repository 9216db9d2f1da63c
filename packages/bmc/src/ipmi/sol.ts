/**
 * Serial over LAN (IPMI 2.0 §15) through ipmitool, to hear it only.
 *
 * 1. ipmitool ends the session with its input, also when this program dies: the BMC learns of the
 *    end, and is free for the next session.
 * 2. ipmitool's own output before the session is established is no output of the machine.
 */
import type { Clock, Exec } from '@rackwright/platform';
import { type BmcConsole, type BmcResult, type OnConsoleOutput, ok, transient } from '../driver.ts';
import { type IpmiTarget, script, sessionArguments, shell, unfitTarget } from './ipmitool.ts';
import type { IpmitoolOptions } from './options.ts';
import { refusalOf } from './refusal.ts';

export interface SolParts {
  readonly exec: Exec;
  readonly clock: Clock;
  readonly ipmitool: IpmitoolOptions;
  readonly target: IpmiTarget;
}

/** A session is ended after this, in case a caller forgets to end it. */
const sessionMsMax = 24 * 3_600_000;
/** How long ipmitool may take to tell the BMC that the session is over. */
const goodbyeMs = 5_000;
const lineBytesMax = 4_096;
const established = '[SOL Session operational.';
const newline = 0x0a;

export async function openSol(
  { exec, clock, ipmitool, target }: SolParts,
  hear: OnConsoleOutput,
  signal?: AbortSignal,
): Promise<BmcResult<BmcConsole>> {
  const isGivenUp = (): boolean => signal?.aborted === true;
  const unfit = unfitTarget(target);
  if (unfit !== undefined) return unfit;
  if (isGivenUp()) return transient('cancelled', 'the call was given up');
  const [input, kill] = [new AbortController(), new AbortController()];
  const close = (): void => {
    if (input.signal.aborted) return;
    input.abort();
    const cancel = clock.after(goodbyeMs, () => kill.abort());
    void ended.finally(cancel);
  };
  const opened = Promise.withResolvers<'established'>();
  const run = exec.run(
    {
      file: shell,
      args: ['-c', script, ipmitool.path, ...sessionArguments(target), 'sol', 'activate'],
      stdin: `${target.password}\n`,
      inputOpenUntil: input.signal,
      onOutput: hearEstablished(() => opened.resolve('established'), hear),
      timeoutMs: sessionMsMax,
      outputBytesMax: lineBytesMax,
    },
    kill.signal,
  );
  const ended = run.then(() => undefined);
  const cancel = clock.after(ipmitool.callTimeoutMs, close);
  // A caller that wants the BMC does not wait for an orderly end.
  const giveUp = (): void => {
    close();
    kill.abort();
  };
  signal?.addEventListener('abort', giveUp, { once: true });
  const first = await Promise.race([opened.promise, run]);
  cancel();
  signal?.removeEventListener('abort', giveUp);
  if (isGivenUp()) return transient('cancelled', 'the call was given up');
  if (first === 'established') return ok({ close, ended });
  if (first.kind === 'exited' && first.code === 0) {
    return transient('unreachable', 'the serial console did not open in time');
  }
  return refusalOf(first, target.password);
}

/**
 * Calls `onEstablished` when ipmitool reports the session, and `hear` with all output behind that
 * report.
 */
function hearEstablished(onEstablished: () => void, hear: OnConsoleOutput): OnConsoleOutput {
  let line: string | undefined = '';
  return (bytes) => {
    if (line === undefined) return hear(bytes);
    for (let at = 0; at < bytes.length; at += 1) {
      const byte = bytes[at] ?? newline;
      if (byte !== newline) {
        if (line.length < lineBytesMax) line += String.fromCharCode(byte);
        continue;
      }
      const isEstablished = line.includes(established);
      line = '';
      if (!isEstablished) continue;
      line = undefined;
      onEstablished();
      if (at + 1 < bytes.length) hear(bytes.subarray(at + 1));
      return;
    }
  };
}
