import type { Exec } from '@rackwright/platform';
import { type BmcResult, failed, ok, transient } from '../driver.ts';
import type { IpmitoolOptions } from './options.ts';
import { refusalOf, refusalOfFru } from './refusal.ts';

/** One BMC and the credential to reach it with. Lives in memory only. */
export interface IpmiTarget {
  /** IPv4 or IPv6 address, or a name. */
  readonly address: string;
  /** 1–65535; 623 by default in the protocol. */
  readonly port: number;
  /**
   * RMCP+ cipher suite: 3 (SHA-1) or 17 (SHA-256); undefined lets ipmitool ask the BMC for its
   * best, which takes 10 s per call with BMCs that do not know the question.
   */
  readonly cipherSuite: number | undefined;
  readonly user: string;
  readonly password: string;
  /** Credential name and version, for the governor and for messages. Never the secret. */
  readonly credential: string;
}

/** IPMI 2.0 §22.30 (Set User Password): 20 bytes at most, and names of 16 (§22.28). */
const passwordBytesMax = 20;
const userBytesMax = 16;
const outputBytesMax = 16_384;

/**
 * ipmitool must read the password from a pipe: the standard input that Node gives a child is a
 * socket, and opening /dev/stdin on a socket fails with ENXIO. `cat` makes it a pipe; the
 * password is in no argument, no environment and no file.
 */
export const shell = '/bin/sh';
export const script = 'cat | "$0" "$@"';

/** A call that prints a long list, separated by commas. */
export interface IpmitoolListing {
  readonly timeoutMs: number;
  readonly outputBytesMax: number;
}

/** Runs one ipmitool command; `ok` carries its standard output. */
export async function callIpmitool(
  exec: Exec,
  options: IpmitoolOptions,
  target: IpmiTarget,
  command: readonly string[],
  signal?: AbortSignal,
  listing?: IpmitoolListing,
): Promise<BmcResult<string>> {
  const unfit = unfitTarget(target);
  if (unfit !== undefined) return unfit;
  const result = await exec.run(
    {
      file: shell,
      args: [
        ...['-c', script, options.path],
        ...(listing === undefined ? [] : ['-c']),
        ...[...sessionArguments(target), ...command],
      ],
      stdin: target.password,
      timeoutMs: listing?.timeoutMs ?? options.callTimeoutMs,
      outputBytesMax: listing?.outputBytesMax ?? outputBytesMax,
    },
    signal,
  );
  if (signal?.aborted === true) return transient('cancelled', 'the call was given up');
  if (result.kind === 'exited' && result.code === 0) {
    const { stdout, stderr } = result;
    const isFru = command[0] === 'fru';
    return (isFru ? refusalOfFru(stdout, stderr) : undefined) ?? ok(stdout);
  }
  return refusalOf(result, target.password);
}

/**
 * `-v` because only it tells a wrong password from silence; `-N 2 -R 2` bound the wait for a
 * silent BMC.
 */
export function sessionArguments(target: IpmiTarget): readonly string[] {
  const { address, port, cipherSuite, user } = target;
  const suite = cipherSuite === undefined ? [] : ['-C', `${cipherSuite}`];
  const session = ['-v', '-I', 'lanplus', ...suite];
  const connection = ['-H', address, '-p', `${port}`, '-U', user];
  return [...session, ...connection, '-N', '2', '-R', '2', '-f', '/dev/stdin'];
}

/** Refuses here a target that ipmitool would cut short or misread. */
export function unfitTarget(target: IpmiTarget): BmcResult<never> | undefined {
  if (!/^[0-9a-z.:_-]{1,253}$/i.test(target.address) || target.address.startsWith('-')) {
    const form = 'an IPv4 or IPv6 address or a host name';
    return failed('address', `BMC address ${JSON.stringify(target.address)} is not ${form}`);
  }
  const bytesOf = (text: string): number => new TextEncoder().encode(text).length;
  if (bytesOf(target.password) > passwordBytesMax || /\p{Cc}/u.test(target.password)) {
    const form = `at most ${passwordBytesMax} bytes without control characters`;
    return failed(
      'invalidCredential',
      `an IPMI password has ${form}: ${target.credential} has not`,
    );
  }
  if (bytesOf(target.user) > userBytesMax || /\p{Cc}/u.test(target.user)) {
    const form = `at most ${userBytesMax} bytes without control characters`;
    return failed(
      'invalidCredential',
      `an IPMI user name has ${form}: ${target.credential} has not`,
    );
  }
  return undefined;
}
